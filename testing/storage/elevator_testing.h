// SPDX-License-Identifier: GPL-3.0-or-later
//
// Helpers for tests of ElevatorScheduler.
#ifndef QUIRE_TESTING_STORAGE_ELEVATOR_TESTING_H_
#define QUIRE_TESTING_STORAGE_ELEVATOR_TESTING_H_

#include <cstdint>
#include <vector>

#include "server/storage/scheduler/scheduler.h"

namespace quire {

inline constexpr SchedulerTime kStart{0};

inline constexpr DispatchLimits kNoLimits{
    .reads_max = 1 << 20, .memory_size_bytes_max = uint64_t{1} << 60};
inline constexpr DispatchLimits kOneRead{
    .reads_max = 1, .memory_size_bytes_max = uint64_t{1} << 60};
// A gap that no read spans.
inline constexpr uint64_t kFar = 1 << 20;

// Ids of the requests that `reads` serve, in order.
inline std::vector<uint64_t> DispatchedIds(
    const std::vector<ScheduledRead>& reads) {
  std::vector<uint64_t> ids;
  for (const ScheduledRead& read : reads) {
    ids.insert(ids.end(), read.request_ids.begin(), read.request_ids.end());
  }
  return ids;
}

}  // namespace quire

#endif  // QUIRE_TESTING_STORAGE_ELEVATOR_TESTING_H_
