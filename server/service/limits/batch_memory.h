// SPDX-License-Identifier: GPL-3.0-or-later
//
// The memory of one batch: its waiting items and its window.
#ifndef QUIRE_SERVER_SERVICE_LIMITS_BATCH_MEMORY_H_
#define QUIRE_SERVER_SERVICE_LIMITS_BATCH_MEMORY_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"

#include "server/service/limits/admission.h"
#include "server/service/limits/stream_window.h"

namespace quire {

// A batch has memory from the arrival of items until all of them are answered:
// an open, silent batch holds none. Thread-compatible.
class BatchMemory {
 public:
  // Charge for an item: in a message that is read and parsed; as an error.
  static constexpr uint64_t kItemBytes = 512;
  // Charge while an item waits or is answered: its record in the queue. From
  // the start of its fetch the window has the rest.
  static constexpr uint64_t kWaitingItemBytes = 160;
  static constexpr uint64_t kActiveItemBytes = kItemBytes - kWaitingItemBytes;

  // `admission` must outlive this.
  BatchMemory(Admission& admission, std::string client)
      : admission_(admission), client_(std::move(client)) {}

  struct Counts {
    uint64_t items = 0;
    // Those of `items` that were refused on arrival.
    uint64_t refused = 0;
  };

  // Items of one message, and the memory of their answers.
  struct Arrival {
    Counts count;
    // Memory of the largest answer with kActiveItemBytes, positive.
    uint64_t largest_bytes = 0;
    // Memory of all answers.
    uint64_t all_bytes = 0;
  };

  // Claims memory for a received message; no effect if it is empty. The window
  // is at most `window_most_bytes`, or as wide as the largest answer.
  // Errors: as Admission::Admit(). The batch is over then.
  absl::Status Arrive(const Arrival& arrival, uint64_t window_most_bytes);

  // Claims memory for a message of `count_max` items before it is read. If
  // nothing waits, the message is admitted like a new call instead. Returns
  // false if the memory is in use; the batch then continues with what it has.
  // REQUIRES: the last message for which this was called has arrived.
  bool TryReserve(uint64_t count_max);

  // Records that items were answered, which took `size_bytes` of the window.
  void Sent(Counts count, uint64_t size_bytes);

  StreamWindow& window() { return window_; }

  // Items without an answer.
  uint64_t unanswered_count() const { return unanswered_count_; }

 private:
  static uint64_t BytesOf(Counts count) {
    return count.items * kWaitingItemBytes + count.refused * kActiveItemBytes;
  }

  Admission& admission_;
  const std::string client_;
  Admission::Ticket items_;
  // Part of `items_` for a message being read.
  uint64_t reserved_bytes_ = 0;
  uint64_t unanswered_count_ = 0;
  StreamWindow window_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LIMITS_BATCH_MEMORY_H_
