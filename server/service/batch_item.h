// SPDX-License-Identifier: GPL-3.0-or-later
//
// An item of a batch: from what was sent to what is to be read, and from what
// was read to the bytes of its answer.
#ifndef QUIRE_SERVER_SERVICE_BATCH_ITEM_H_
#define QUIRE_SERVER_SERVICE_BATCH_ITEM_H_

#include <array>
#include <cstdint>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"

#include "proto/quire/v1/archive.pb.h"

#include "server/archive/positions.h"
#include "server/service/answer_bytes.h"
#include "server/service/answer_read.h"
#include "server/service/call_context.h"
#include "server/service/call_metrics.h"
#include "server/service/catalog.h"
#include "server/service/range_read.h"
#include "server/service/read_planner.h"

namespace quire {

// An item from its fetch to its answer.
struct BatchAnswer {
  uint64_t tag = 0;
  ResolvedTarget target = {};
  // What it takes of the window beside `blocks`, which it may share.
  uint64_t own_bytes = 0;
  absl::InlinedVector<BlockAddress, 2> blocks = {};
  std::shared_ptr<RangeRead> read = nullptr;
  // Set when the item is ready.
  absl::StatusOr<Answer> outcome;
};

// Of one message of answers.
using TallyByEncoding = std::array<AnswerTally, v1::WireEncoding_ARRAYSIZE>;

// What `item` asks for, if a batch may answer it in `encoding`: its answer must
// fit the client's share of memory beside a message of items. Thread-safe.
// Errors: those of ResolveTarget(), and
//   ResourceExhausted  LIMIT_EXCEEDED: the item is too large, and is to be
//                      asked for by ReadStream
absl::StatusOr<ResolvedTarget> ResolveBatchItem(const ServiceCore& core,
                                                const ServedArchive& archive,
                                                v1::WireEncoding encoding,
                                                const v1::BatchItem& item);

// Appends a ready item to a message, and counts it unless it failed. Computes
// the checksum of its data.
void AppendResult(const ServedArchive& archive, const BatchAnswer& item,
                  AnswerBytes& bytes, TallyByEncoding& tallies);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_BATCH_ITEM_H_
