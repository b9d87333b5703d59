// SPDX-License-Identifier: Apache-2.0
#include "loadtest/requests/load_pacer.h"

#include <algorithm>
#include <utility>

namespace quire {

LoadPacer::LoadPacer(uint64_t outstanding_max,
                     std::unique_ptr<ArrivalSchedule> schedule)
    : outstanding_max_(outstanding_max), schedule_(std::move(schedule)) {
  if (schedule_ != nullptr) {
    next_.due_ns = schedule_->NextNs();
  }
}

void LoadPacer::Advance() {
  ++next_.index;
  if (schedule_ != nullptr) {
    next_.due_ns = schedule_->NextNs();
  }
}

std::optional<LoadPacer::Call> LoadPacer::Take(uint64_t now_ns) {
  if (is_over() || outstanding_count_ == outstanding_max_) {
    return std::nullopt;
  }
  Call call = next_;
  if (schedule_ == nullptr) {
    call.due_ns = now_ns;
  } else if (call.due_ns > now_ns) {
    return std::nullopt;
  } else {
    const bool is_held = call.due_ns < freed_ns_;
    held_count_ += is_held ? 1 : 0;
    const uint64_t possible_ns = std::max(call.due_ns, freed_ns_);
    late_count_ += now_ns > possible_ns + kLateNs ? 1 : 0;
  }
  Advance();
  ++outstanding_count_;
  return call;
}

void LoadPacer::Finish(uint64_t now_ns) {
  if (outstanding_count_ == outstanding_max_) {
    freed_ns_ = std::max(freed_ns_, now_ns);
  }
  --outstanding_count_;
}

void LoadPacer::Stop(uint64_t now_ns,
                     absl::FunctionRef<void(uint64_t)> unstarted) {
  if (schedule_ != nullptr) {
    // Their index does not advance, as they were never started.
    while (!is_stopped_ && next_.due_ns <= now_ns &&
           next_.index + unstarted_count_ != call_count_) {
      ++unstarted_count_;
      unstarted(next_.due_ns);
      next_.due_ns = schedule_->NextNs();
    }
  }
  is_stopped_ = true;
}

std::optional<uint64_t> LoadPacer::NextDueNs() const {
  if (is_over() || outstanding_count_ == outstanding_max_) {
    return std::nullopt;
  }
  return schedule_ == nullptr ? 0 : next_.due_ns;
}

}  // namespace quire
