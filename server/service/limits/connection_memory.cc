// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/connection_memory.h"

#include <algorithm>
#include <utility>

namespace quire {
namespace {

// Connections by which the memory grows and shrinks.
constexpr size_t kStepCount = 64;

}  // namespace

ConnectionMemory::ConnectionMemory(const MemoryPlan& plan,
                                   const ConnectionCost& cost, Borrow borrow,
                                   SetQuota set_quota)
    : requests_bytes_(plan.requests_bytes),
      cost_(cost),
      included_count_(plan.requests_bytes / 2 / cost.memory_bytes),
      connections_max_(included_count_ +
                       LendableCacheBytes(plan) / 8 * 7 / cost.memory_bytes),
      borrow_(std::move(borrow)),
      set_quota_(std::move(set_quota)),
      reserved_count_(included_count_) {
  set_quota_(requests_bytes_);
}

size_t ConnectionMemory::Fit(size_t count) {
  size_t wanted =
      std::min(included_count_ + (std::max(count, included_count_) -
                                  included_count_ + kStepCount - 1) /
                                     kStepCount * kStepCount,
               connections_max_);
  // Not at each arrival and end around a multiple of the step.
  if (wanted == reserved_count_ ||
      (wanted < reserved_count_ && reserved_count_ - wanted <= kStepCount)) {
    return reserved_count_;
  }
  const auto set_quota = [&] {
    set_quota_(requests_bytes_ +
               (wanted - included_count_) * cost_.quota_bytes);
  };
  // The cache shrinks before the quota grows.
  if (wanted < reserved_count_) {
    set_quota();
  }
  if (!borrow_((wanted - included_count_) * cost_.memory_bytes)) {
    return reserved_count_;
  }
  if (wanted > reserved_count_) {
    set_quota();
  }
  reserved_count_ = wanted;
  return reserved_count_;
}

}  // namespace quire
