// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_REQUESTS_LOAD_PACER_H_
#define QUIRE_LOADTEST_REQUESTS_LOAD_PACER_H_

#include <cstdint>
#include <optional>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"

namespace quire {

// Returns the due times of an open loop's calls one by one, in nanoseconds from
// the run's start; they never decrease. Null for a closed loop.
using DueTimes = absl::AnyInvocable<uint64_t()>;

// Returns exponential times between `rate` calls per second, as of many
// independent clients. The same seed gives the same times. REQUIRES: rate > 0.
DueTimes ArrivalsAtRate(double rate, uint64_t seed);

// Decides when a run may start its next call. A state machine without a clock
// or threads: every time is passed in, in nanoseconds from the run's start.
//
// In an open loop `due_times` determine when a call is due. If the maximum
// number of calls is in flight, it is held until one of them ends, but its
// latency counts from its due time: a server that stalls is charged with every
// arrival of the stall, not with one per connection ("coordinated omission").
// Thread-compatible.
class LoadPacer {
 public:
  // An arrival later than this, and not held, is this program's own fault.
  static constexpr uint64_t kLateNs = 1'000'000;

  // `outstanding_max` calls may be in flight. In a closed loop a call is due
  // whenever it may start. REQUIRES: outstanding_max > 0.
  LoadPacer(uint64_t outstanding_max, DueTimes due_times);

  struct Call {
    // From 0.
    uint64_t index = 0;
    uint64_t due_ns = 0;
  };

  // Returns the call to start now, which is then in flight; nullopt if there is
  // none. Times never decrease, except by differences between threads' clocks.
  std::optional<Call> Take(uint64_t now_ns);

  // Sets the number of calls. REQUIRES: not less than started_count().
  void EndAt(uint64_t call_count) { call_count_ = call_count; }

  // Records the end of a call.
  void Finish(uint64_t now_ns);

  // Stops all starts. Counts calls that were due by `now_ns`, and calls
  // `unstarted` with the due time of each.
  void Stop(uint64_t now_ns, absl::FunctionRef<void(uint64_t)> unstarted);

  // Returns when Take() will return a call if none ends earlier; nullopt: not
  // before one ends.
  std::optional<uint64_t> NextDueNs() const;

  uint64_t outstanding_count() const { return outstanding_count_; }

  uint64_t started_count() const { return next_.index; }

  // True if no call will start any more.
  bool is_over() const { return is_stopped_ || next_.index == call_count_; }

  // See LoadReport.
  uint64_t held_count() const { return held_count_; }

  uint64_t late_count() const { return late_count_; }

  uint64_t unstarted_count() const { return unstarted_count_; }

 private:
  void Advance();

  const uint64_t outstanding_max_;
  std::optional<uint64_t> call_count_;
  // Null for a closed loop.
  DueTimes due_times_;
  Call next_;
  uint64_t outstanding_count_ = 0;
  // End of the last call while the maximum was in flight.
  uint64_t freed_ns_ = 0;
  bool is_stopped_ = false;
  uint64_t held_count_ = 0;
  uint64_t late_count_ = 0;
  uint64_t unstarted_count_ = 0;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_REQUESTS_LOAD_PACER_H_
