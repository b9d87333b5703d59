// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/client_limits.h"

#include <algorithm>

#include "codecs/base/byte_size.h"
#include "codecs/block_codec.h"

namespace quire {
namespace {

// Default limit of gRPC's clients.
constexpr uint64_t kAnswerSizeBytesMax = 4 * kMiB;
// Part of an answer without its data: mostly the document's description.
constexpr uint64_t kAnswerHeadSizeBytesMax = 256 * kKiB;

}  // namespace

v1::Limits MakeClientLimits(const MemoryPlan& plan) {
  v1::Limits limits;
  limits.set_in_flight_size_bytes_max(plan.in_flight_bytes);
  // Half of it for one client: enough alone, and it cannot shut out the others.
  limits.set_client_in_flight_size_bytes_max(plan.in_flight_bytes / 2);
  // An answer of stored blocks has up to two blocks more than requested, and
  // every encoding pins as much. So every answer fits a client that does not
  // know this limit.
  limits.set_read_size_bytes_max(
      std::min(kAnswerSizeBytesMax - kAnswerHeadSizeBytesMax,
               plan.in_flight_bytes / 4) -
      2 * kBlockSizeBytesMax);
  // Large enough that the cost of messages is small, and small enough for a
  // processor's own cache and for the default limit of gRPC's clients, 4 MiB.
  limits.set_chunk_size_bytes_max(1 * kMiB);
  limits.set_batch_message_items_max(4096);
  limits.set_batch_pending_items_max(131072);
  limits.set_page_size_max(4000);
  limits.set_document_id_size_bytes_max(64 * kKiB);
  return limits;
}

uint64_t StreamWindowBytes(const v1::Limits& limits) {
  // An eighth of one client's share, or space for one whole chunk with its
  // blocks and encoding, if that is more.
  return std::max(limits.client_in_flight_size_bytes_max() / 8,
                  2 * limits.chunk_size_bytes_max() + 2 * kBlockSizeBytesMax);
}

}  // namespace quire
