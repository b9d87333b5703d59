// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_REPORT_LOAD_RECORDER_H_
#define QUIRE_LOADTEST_REPORT_LOAD_RECORDER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

#include "codecs/base/mutex.h"
#include "loadtest/report/load_report.h"
#include "loadtest/requests/load_targets.h"

namespace quire {

// Sizes of an answer, and the time of decoding it.
struct AnswerCost {
  uint64_t text_bytes = 0;
  // Encoded data, and whole messages.
  uint64_t wire_bytes = 0;
  uint64_t message_bytes = 0;
  // Part of the latency.
  uint64_t decode_ns = 0;
};

// Result of one request: an error, a fault of its answer in words, or success.
// Times are in nanoseconds from the run's start.
struct LoadOutcome {
  LoadTarget target = {};
  // Latency counts from here.
  uint64_t due_ns = 0;
  uint64_t ended_ns = 0;
  absl::Status status = {};
  // Reason of the status, such as "SERVER_BUSY"; or empty.
  std::string reason = {};
  std::optional<std::string> fault = {};
  AnswerCost cost = {};
};

// Collects a report. Omits requests that were due before the warm-up ended.
// Thread-safe.
class LoadRecorder {
 public:
  // Ends the warm-up: requests due from here on count.
  void BeginWindow(uint64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);

  void Record(const LoadOutcome& outcome) ABSL_LOCKS_EXCLUDED(mutex_);

  // Counts a retry after the server was busy.
  void CountRetry() ABSL_LOCKS_EXCLUDED(mutex_);

  // Counts `count` requests whose calls were cancelled at the end of the run.
  void CountUnanswered(uint64_t due_ns, uint64_t now_ns, uint64_t count)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Counts a request that waited at least from `due_ns` to `now_ns` and will
  // never be made, only in the latencies.
  void AddLowerBound(uint64_t due_ns, uint64_t now_ns)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the figures of a run that ended at `now_ns`.
  LoadReport Finish(uint64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // As AddLowerBound() for `count` requests, within the window only.
  void AddWait(uint64_t due_ns, uint64_t now_ns, uint64_t count)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  std::optional<uint64_t> window_ns_ ABSL_GUARDED_BY(mutex_);
  LoadReport report_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_REPORT_LOAD_RECORDER_H_
