// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog/decode_workspaces.h"

#include <algorithm>
#include <utility>

#include "codecs/base/check.h"

namespace quire {

DecodeWorkspaces::Lease::Lease(Lease&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      owner_(other.owner_),
      size_bytes_(other.size_bytes_),
      scratch_(std::move(other.scratch_)) {}

DecodeWorkspaces::Lease::~Lease() {
  if (pool_ != nullptr) {
    pool_->GiveBack(*this);
  }
}

DecodeWorkspaces::Lease DecodeWorkspaces::Take(const void* owner,
                                               uint64_t size_bytes,
                                               Factory make) {
  QUIRE_CHECK(size_bytes <= size_bytes_max_);
  std::unique_ptr<BlockCodec::Scratch> kept;
  {
    MutexLock lock(&mutex_);
    const uint64_t my_turn = next_turn_++;
    while (turn_ != my_turn ||
           size_bytes_ - idle_bytes_ + size_bytes > size_bytes_max_) {
      changed_.Wait(&mutex_);
    }
    kept = TakeIdle(owner);
    if (kept == nullptr) {
      while (size_bytes_ + size_bytes > size_bytes_max_) {
        size_bytes_ -= idle_.front().size_bytes;
        idle_bytes_ -= idle_.front().size_bytes;
        idle_.erase(idle_.begin());
      }
      size_bytes_ += size_bytes;
    }
    ++turn_;
  }
  changed_.NotifyAll();
  Lease lease(*this, owner, size_bytes);
  // If make() fails, the lease and its bytes are released.
  lease.scratch_ = kept != nullptr ? std::move(kept) : make();
  return lease;
}

std::unique_ptr<BlockCodec::Scratch> DecodeWorkspaces::TakeIdle(
    const void* owner) {
  const auto found =
      std::find_if(idle_.rbegin(), idle_.rend(),
                   [owner](const Idle& idle) { return idle.owner == owner; });
  if (found == idle_.rend()) {
    return nullptr;
  }
  idle_bytes_ -= found->size_bytes;
  std::unique_ptr<BlockCodec::Scratch> scratch = std::move(found->scratch);
  idle_.erase(std::next(found).base());
  return scratch;
}

void DecodeWorkspaces::GiveBack(Lease& lease) {
  Idle dropped;
  {
    MutexLock lock(&mutex_);
    if (lease.scratch_ == nullptr) {
      size_bytes_ -= lease.size_bytes_;
    } else {
      idle_.push_back(
          {lease.owner_, lease.size_bytes_, std::move(lease.scratch_)});
      idle_bytes_ += lease.size_bytes_;
      if (idle_.size() > kIdleMax) {
        dropped = std::move(idle_.front());
        idle_.erase(idle_.begin());
        size_bytes_ -= dropped.size_bytes;
        idle_bytes_ -= dropped.size_bytes;
      }
    }
  }
  changed_.NotifyAll();
}

void DecodeWorkspaces::Forget(const void* owner) {
  MutexLock lock(&mutex_);
  for (Idle& idle : idle_) {
    if (idle.owner == owner) {
      size_bytes_ -= idle.size_bytes;
      idle_bytes_ -= idle.size_bytes;
      idle.scratch.reset();
    }
  }
  std::erase_if(idle_,
                [](const Idle& idle) { return idle.scratch == nullptr; });
}

uint64_t DecodeWorkspaces::size_bytes() const {
  MutexLock lock(&mutex_);
  return size_bytes_;
}

}  // namespace quire
