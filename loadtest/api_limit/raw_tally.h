// SPDX-License-Identifier: Apache-2.0
//
// What is counted while calls run as fast as they come back.
#ifndef QUIRE_LOADTEST_API_LIMIT_RAW_TALLY_H_
#define QUIRE_LOADTEST_API_LIMIT_RAW_TALLY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

#include "codecs/base/mutex.h"

namespace quire {

struct RawLoadOptions {
  // Thrown away before it counts.
  absl::Duration warm_up = absl::Milliseconds(200);
  // As often as it takes until an answer has come.
  absl::Duration duration = absl::Seconds(1);
  // Calls, or items of batches, that wait for an answer; of all channels
  // together.
  size_t in_flight = 64;
  // Least size of an answer's data: what is smaller is a fault.
  uint64_t range_size_bytes = 0;
  // Whose CPU time is asked for; 0: nobody's.
  int server_pid = 0;
};

struct RawLoadReport {
  uint64_t answer_count = 0;
  // Of the messages that they came in, whole.
  uint64_t size_bytes = 0;
  // Calls that failed, answers that were too short.
  uint64_t fault_count = 0;
  double seconds = 0;
  // Of the server's process, user and system.
  double server_cpu_seconds = 0;
  // Of this process.
  double client_cpu_seconds = 0;
  // What the first fault was.
  std::string fault;
};

// What all calls of a run share. Thread-safe.
class RawTally {
 public:
  explicit RawTally(const RawLoadOptions& options) : options_(options) {}

  const RawLoadOptions& options() const { return options_; }

  // No call should be begun any more.
  bool stopped() const { return stop_.load(std::memory_order_relaxed); }

  // Around each call; what is measured ends when all have ended.
  void Begin() ABSL_LOCKS_EXCLUDED(mutex_);
  void End() ABSL_LOCKS_EXCLUDED(mutex_);

  // So many answers came in a message of so many bytes.
  void Answered(uint64_t count, uint64_t size_bytes) {
    answer_count_.fetch_add(count, std::memory_order_relaxed);
    size_bytes_.fetch_add(size_bytes, std::memory_order_relaxed);
  }

  // Ends the run: its loop ends with it, and the rest would mean nothing.
  void Fault(const std::string& fault) ABSL_LOCKS_EXCLUDED(mutex_);

  // Lets the calls run for their time, then end. Blocks until they have;
  // `on_stop` is called as soon as stopped() is true.
  template <typename OnStop>
  RawLoadReport Measure(OnStop on_stop) ABSL_LOCKS_EXCLUDED(mutex_) {
    RawLoadReport report = Count();
    on_stop();
    return WaitForEnd(report);
  }

  RawLoadReport Measure() {
    return Measure([] {});
  }

 private:
  RawLoadReport Count();
  RawLoadReport WaitForEnd(RawLoadReport report) ABSL_LOCKS_EXCLUDED(mutex_);

  const RawLoadOptions options_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> answer_count_{0};
  std::atomic<uint64_t> size_bytes_{0};
  Mutex mutex_;
  CondVar all_ended_;
  size_t open_count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t fault_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string fault_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_API_LIMIT_RAW_TALLY_H_
