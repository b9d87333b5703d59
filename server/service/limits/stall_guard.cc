// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/stall_guard.h"

namespace quire {

StallGuard::StallGuard(absl::Duration limit)
    : tick_length_(limit / static_cast<int64_t>(kTicksPerLimit)),
      sweeper_([this] { SweepUntilStopped(); }) {}

StallGuard::~StallGuard() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
  }
  stop_changed_.NotifyAll();
  sweeper_.join();
}

StallGuard::Entry::Entry(StallGuard& guard,
                         grpc::CallbackServerContext& context)
    : guard_(guard), context_(context), shard_index_(ThreadShard()) {
  Shard& shard = guard_.shards_[shard_index_];
  MutexLock lock(&shard.mutex);
  next_ = shard.first;
  if (next_ != nullptr) {
    next_->previous_ = this;
  }
  shard.first = this;
}

StallGuard::Entry::~Entry() {
  Shard& shard = guard_.shards_[shard_index_];
  MutexLock lock(&shard.mutex);
  (previous_ != nullptr ? previous_->next_ : shard.first) = next_;
  if (next_ != nullptr) {
    next_->previous_ = previous_;
  }
}

void StallGuard::SweepUntilStopped() {
  MutexLock lock(&mutex_);
  while (!stop_) {
    if (stop_changed_.WaitFor(&mutex_,
                              absl::ToChronoNanoseconds(tick_length_))) {
      continue;
    }
    Sweep(++tick_);
  }
}

void StallGuard::Sweep(uint64_t now) {
  for (Shard& shard : shards_) {
    MutexLock lock(&shard.mutex);
    for (Entry* entry = shard.first; entry != nullptr; entry = entry->next_) {
      const uint64_t armed_at_tick = entry->armed_at_tick_;
      if (armed_at_tick != 0 && now > armed_at_tick + kTicksPerLimit - 1) {
        entry->armed_at_tick_ = 0;
        ++stalled_count_;
        // Under the lock, which keeps the context alive; TryCancel() only
        // queues the cancellation.
        entry->context_.TryCancel();
      }
    }
  }
}

}  // namespace quire
