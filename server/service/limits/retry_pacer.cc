// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/retry_pacer.h"

#include <algorithm>

namespace quire {
namespace {

// A shorter measurement depends on single calls; a longer one says nothing
// about the present.
constexpr absl::Duration kMeasurementMin = absl::Milliseconds(100);
constexpr absl::Duration kMeasurementMax = absl::Seconds(2);
// Assumed time to release all bytes when almost none are released.
constexpr double kSlowestSeconds = 16;

// Returns a part of `whole` that differs much between consecutive numbers.
absl::Duration Spread(absl::Duration whole, uint64_t number) {
  // 2^32 over the golden ratio: its multiples are spread evenly over a circle.
  const auto place = static_cast<uint32_t>(number * 0x9E3779B9U);
  return whole * (static_cast<double>(place) / 4294967296.0);
}

}  // namespace

absl::Duration RetryPacer::Refuse(absl::string_view client, uint64_t size_bytes,
                                  uint64_t freed_bytes, absl::Time now) {
  Measure(freed_bytes, now);
  absl::Time& due = due_by_client_.try_emplace(client, now).first->second;
  const double share_bytes_per_second =
      freed_bytes_per_second_ / static_cast<double>(due_by_client_.size());
  const absl::Duration turn =
      absl::Seconds(static_cast<double>(size_bytes) / share_bytes_per_second);
  // At most the longest wait, or a client would pay long afterwards.
  due = std::min(std::max(due, now) + turn, now + kWaitMax);
  const absl::Duration wait = kWaitMin + (due - now);
  if (wait <= kWaitMax) {
    return wait;
  }
  // The line is longer than the longest wait.
  return kWaitMax - Spread(kWaitMax / 2, ++refused_count_);
}

void RetryPacer::Measure(uint64_t freed_bytes, absl::Time now) {
  const absl::Duration past = now - measured_at_;
  if (past >= absl::ZeroDuration() && past < kMeasurementMin) {
    return;
  }
  const auto total_bytes = static_cast<double>(total_bytes_);
  // A clock that was set back gives no measurement.
  if (past < absl::ZeroDuration() || past > kMeasurementMax) {
    freed_bytes_per_second_ = total_bytes;
  } else {
    freed_bytes_per_second_ =
        std::max(total_bytes / kSlowestSeconds,
                 static_cast<double>(freed_bytes - measured_freed_bytes_) /
                     absl::ToDoubleSeconds(past));
  }
  measured_at_ = now;
  measured_freed_bytes_ = freed_bytes;
  absl::erase_if(due_by_client_,
                 [now](const auto& entry) { return entry.second <= now; });
}

}  // namespace quire
