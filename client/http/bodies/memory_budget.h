// SPDX-License-Identifier: Apache-2.0
//
// Bytes that requests and connections may hold: a part of --memory, or of a
// disk.
#ifndef QUIRE_CLIENT_HTTP_BODIES_MEMORY_BUDGET_H_
#define QUIRE_CLIENT_HTTP_BODIES_MEMORY_BUDGET_H_

#include <atomic>
#include <cstddef>
#include <utility>

namespace quire {

// Counts bytes against a limit. Allocates nothing, never blocks, and has no
// queue: a small request may succeed after a large one failed.
// Thread-safe. Must outlive its charges.
class MemoryBudget {
 public:
  // 0: every TryTake() of more than 0 bytes fails.
  explicit MemoryBudget(size_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // Takes `size_bytes`; returns false, and takes nothing, if the limit would be
  // exceeded. Prefer a MemoryCharge, which gives them back.
  bool TryTake(size_t size_bytes) {
    size_t used = used_bytes_.load(std::memory_order_relaxed);
    do {
      if (size_bytes > limit_bytes_ - used) {
        return false;
      }
    } while (!used_bytes_.compare_exchange_weak(used, used + size_bytes,
                                                std::memory_order_relaxed));
    return true;
  }

  // REQUIRES: at least `size_bytes` are taken.
  void Release(size_t size_bytes) {
    used_bytes_.fetch_sub(size_bytes, std::memory_order_relaxed);
  }

  size_t limit_bytes() const { return limit_bytes_; }

  // May be out of date when they return.
  size_t used_bytes() const {
    return used_bytes_.load(std::memory_order_relaxed);
  }

  size_t free_bytes() const { return limit_bytes_ - used_bytes(); }

 private:
  const size_t limit_bytes_;
  // At most limit_bytes_.
  std::atomic<size_t> used_bytes_ = 0;
};

// Bytes taken from a budget, given back on destruction. Movable: the target
// first gives back its own, and the source then charges nothing. The budget
// must outlive it. Thread-compatible.
class MemoryCharge {
 public:
  // Has no budget: may only be assigned to, Reset() or destroyed.
  MemoryCharge() = default;

  // Begins with 0 bytes.
  explicit MemoryCharge(MemoryBudget* budget) : budget_(budget) {}

  ~MemoryCharge() { Reset(); }

  MemoryCharge(MemoryCharge&& other) noexcept
      : budget_(other.budget_),
        size_bytes_(std::exchange(other.size_bytes_, 0)) {}

  MemoryCharge& operator=(MemoryCharge&& other) noexcept {
    if (this != &other) {
      Reset();
      budget_ = other.budget_;
      size_bytes_ = std::exchange(other.size_bytes_, 0);
    }
    return *this;
  }

  // Changes the charge to `size_bytes`. Returns false, and changes nothing, if
  // the budget lacks the difference. REQUIRES: constructed with a budget.
  bool TryResize(size_t size_bytes) {
    if (size_bytes > size_bytes_) {
      if (!budget_->TryTake(size_bytes - size_bytes_)) {
        return false;
      }
    } else {
      budget_->Release(size_bytes_ - size_bytes);
    }
    size_bytes_ = size_bytes;
    return true;
  }

  // Gives all bytes back. The budget stays, for TryResize().
  void Reset() {
    if (size_bytes_ > 0) {
      budget_->Release(std::exchange(size_bytes_, 0));
    }
  }

  size_t size_bytes() const { return size_bytes_; }

 private:
  MemoryBudget* budget_ = nullptr;
  size_t size_bytes_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_BODIES_MEMORY_BUDGET_H_
