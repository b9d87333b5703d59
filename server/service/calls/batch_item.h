// SPDX-License-Identifier: GPL-3.0-or-later
//
// An item of a batch: from the request to the plan of its read, and from the
// read to the bytes of its answer.
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

// Item that waits to be fetched.
struct WaitingItem {
  uint64_t tag = 0;
  ResolvedTarget target = {};
  // Generation of the snapshot of withdrawals that resolved the target.
  uint64_t generation = 0;
  // Upper bound on the memory of its answer, including the description and
  // BatchMemory::kActiveItemBytes.
  uint64_t answer_bytes_max = 0;
};

// Item from its plan to its answer.
struct BatchAnswer {
  uint64_t tag = 0;
  ResolvedTarget target = {};
  // See WaitingItem.
  uint64_t generation = 0;
  // Its own part of the window, without `blocks`, which other items may share.
  uint64_t own_bytes = 0;
  absl::InlinedVector<BlockAddress, 2> blocks = {};
  std::shared_ptr<AnswerRead> read = nullptr;
  // Description of its document; empty if the item asks for a range.
  std::string description = {};
  // If not empty, the item was refused on arrival with this v1::ItemStatus. It
  // is kept serialised, which takes less memory.
  std::string refusal = {};
  // Set when the item is ready, unless it was refused.
  absl::StatusOr<Answer> outcome = Answer();
};

// Counts of one message of answers.
using TallyByEncoding = std::array<AnswerTally, v1::WireEncoding_ARRAYSIZE>;

// Resolves `item`. Its answer and a message of items must fit the client's
// share of memory. Thread-safe.
// Errors: those of ResolveTarget(), and
//   ResourceExhausted  LIMIT_EXCEEDED: the item is too large; read it with
//                      ReadStream
absl::StatusOr<WaitingItem> ResolveBatchItem(const ServiceCore& core,
                                             const ServedContents& contents,
                                             v1::WireEncoding encoding,
                                             const v1::BatchItem& item);

// Refuses a ready item whose document was withdrawn after it was resolved: its
// answer is of the time before, or zeros.
void RefuseIfWithdrawn(const ServedArchive& archive, BatchAnswer& item);

// Returns an upper bound on the bytes of a ready item in a message.
uint64_t ResultSizeBytesMax(const BatchAnswer& item);

// Appends a ready item to a message with the checksum of its data. Counts it
// unless it failed. `head` is scratch, for this function alone: calls that
// share one allocate less.
void AppendResult(const BatchAnswer& item, v1::BatchResult& head,
                  AnswerBytes& bytes, TallyByEncoding& tallies);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_BATCH_ITEM_H_
