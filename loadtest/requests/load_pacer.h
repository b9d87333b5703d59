// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_REQUESTS_LOAD_PACER_H_
#define QUIRE_LOADTEST_REQUESTS_LOAD_PACER_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"

#include "loadtest/requests/arrival_schedule.h"

namespace quire {

// Says when a run may start its next call. A state machine without a clock or
// threads: every time is passed in, in nanoseconds from the run's start.
//
// In an open loop a call is due when its schedule says so. If as many calls are
// out as may be, it is held until one of them ends, and its latency counts from
// when it was due all the same: a server that stalls is charged with every
// arrival of the stall, not with one per connection ("coordinated omission").
// Thread-compatible.
class LoadPacer {
 public:
  // An arrival later than this, and not held, is this program's own fault.
  static constexpr uint64_t kLateNs = 1'000'000;

  // `outstanding_max` calls may be out at once. `schedule` null: a closed loop,
  // where a call is due whenever it may start. REQUIRES: outstanding_max > 0.
  LoadPacer(uint64_t outstanding_max,
            std::unique_ptr<ArrivalSchedule> schedule);

  struct Call {
    // From 0.
    uint64_t index = 0;
    uint64_t due_ns = 0;
  };

  // The call to start now, which is out from then on; nothing if there is none.
  // Times never go backwards, but by what threads' clocks differ.
  std::optional<Call> Take(uint64_t now_ns);

  // No call from that index on starts. REQUIRES: not less than started_count().
  void EndAt(uint64_t call_count) { call_count_ = call_count; }

  // A call has ended.
  void Finish(uint64_t now_ns);

  // From here on no call starts. Counts those that were due by `now_ns`, and
  // calls `unstarted` with the time that each was due.
  void Stop(uint64_t now_ns, absl::FunctionRef<void(uint64_t)> unstarted);

  // When Take() will give something, should no call end before; unset: not
  // until one does.
  std::optional<uint64_t> NextDueNs() const;

  uint64_t outstanding_count() const { return outstanding_count_; }

  uint64_t started_count() const { return next_.index; }

  // No call will start any more.
  bool is_over() const { return is_stopped_ || next_.index == call_count_; }

  // As in LoadReport.
  uint64_t held_count() const { return held_count_; }

  uint64_t late_count() const { return late_count_; }

  uint64_t unstarted_count() const { return unstarted_count_; }

 private:
  void Advance();

  const uint64_t outstanding_max_;
  std::optional<uint64_t> call_count_;
  const std::unique_ptr<ArrivalSchedule> schedule_;
  Call next_;
  uint64_t outstanding_count_ = 0;
  // When the last call ended while as many were out as may be.
  uint64_t freed_ns_ = 0;
  bool is_stopped_ = false;
  uint64_t held_count_ = 0;
  uint64_t late_count_ = 0;
  uint64_t unstarted_count_ = 0;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_REQUESTS_LOAD_PACER_H_
