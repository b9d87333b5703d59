// SPDX-License-Identifier: Apache-2.0
#include "loadtest/requests/load_pacer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "loadtest/requests/random_stream.h"

namespace quire {

DueTimes ArrivalsAtRate(double rate, uint64_t seed) {
  // Separate from the numbers that select requests.
  const uint64_t stream = RandomAt(seed, ~uint64_t{0});
  return [gap_ns = 1e9 / rate, stream, index = uint64_t{0},
          time_ns = 0.0]() mutable {
    // Uniform on [0, 1), a multiple of 2^-53.
    const double fraction =
        static_cast<double>(RandomAt(stream, index++) >> 11) * 0x1.0p-53;
    time_ns -= std::log1p(-fraction) * gap_ns;
    return static_cast<uint64_t>(time_ns);
  };
}

LoadPacer::LoadPacer(uint64_t outstanding_max, DueTimes due_times)
    : outstanding_max_(outstanding_max), due_times_(std::move(due_times)) {
  if (due_times_ != nullptr) {
    next_.due_ns = due_times_();
  }
}

void LoadPacer::Advance() {
  ++next_.index;
  if (due_times_ != nullptr) {
    next_.due_ns = due_times_();
  }
}

std::optional<LoadPacer::Call> LoadPacer::Take(uint64_t now_ns) {
  if (is_over() || outstanding_count_ == outstanding_max_) {
    return std::nullopt;
  }
  Call call = next_;
  if (due_times_ == nullptr) {
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
  if (due_times_ != nullptr) {
    // Their index does not advance, as they were never started.
    while (!is_stopped_ && next_.due_ns <= now_ns &&
           next_.index + unstarted_count_ != call_count_) {
      ++unstarted_count_;
      unstarted(next_.due_ns);
      next_.due_ns = due_times_();
    }
  }
  is_stopped_ = true;
}

std::optional<uint64_t> LoadPacer::NextDueNs() const {
  if (is_over() || outstanding_count_ == outstanding_max_) {
    return std::nullopt;
  }
  return due_times_ == nullptr ? 0 : next_.due_ns;
}

}  // namespace quire
