// SPDX-License-Identifier: GPL-3.0-or-later
//
// An item of a batch: from what was sent to what is to be read, and from what
// was read to the bytes of its answer.
#ifndef QUIRE_SERVER_SERVICE_CALLS_BATCH_ITEM_H_
#define QUIRE_SERVER_SERVICE_CALLS_BATCH_ITEM_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"

#include "proto/quire/v1/archive.pb.h"

#include "codecs/base/positions.h"
#include "server/service/calls/call_context.h"
#include "server/service/catalog/catalog.h"
#include "server/service/metrics/call_metrics.h"
#include "server/service/read/answer_bytes.h"
#include "server/service/read/answer_read.h"
#include "server/service/read/read_planner.h"

namespace quire {

// An item that waits to be fetched.
struct WaitingItem {
  uint64_t tag = 0;
  ResolvedTarget target = {};
  // Upper bound on the memory of its answer, with its description.
  uint64_t answer_bytes_max = 0;
};

// An item from its plan to its answer.
struct BatchAnswer {
  uint64_t tag = 0;
  ResolvedTarget target = {};
  // Of the window, besides `blocks`, which it may share.
  uint64_t own_bytes = 0;
  absl::InlinedVector<BlockAddress, 2> blocks = {};
  std::shared_ptr<AnswerRead> read = nullptr;
  // Its document as answers describe it; empty if a range was asked for.
  std::string description = {};
  // Not empty: the item was refused when it came, with this v1::ItemStatus,
  // serialised, which takes less memory than the status it is made of.
  std::string refusal = {};
  // Unless it was refused: set when the item is ready.
  absl::StatusOr<Answer> outcome = Answer();
};

// Counts of one message of answers.
using TallyByEncoding = std::array<AnswerTally, v1::WireEncoding_ARRAYSIZE>;

// Resolves `item`. Its answer must fit the client's share of memory, besides a
// message of items. Thread-safe.
// Errors: those of ResolveTarget(), and
//   ResourceExhausted  LIMIT_EXCEEDED: the item is too large, and is to be
//                      asked for by ReadStream
absl::StatusOr<WaitingItem> ResolveBatchItem(const ServiceCore& core,
                                             const ServedArchive& archive,
                                             v1::WireEncoding encoding,
                                             const v1::BatchItem& item);

// Upper bound on what a ready item takes of a message, in bytes.
uint64_t ResultSizeBytesMax(const BatchAnswer& item);

// Appends a ready item to a message, and counts it unless it failed. Computes
// the checksum of its data.
void AppendResult(const BatchAnswer& item, AnswerBytes& bytes,
                  TallyByEncoding& tallies);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_BATCH_ITEM_H_
