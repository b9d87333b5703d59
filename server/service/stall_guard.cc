// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/stall_guard.h"

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

StallGuard::Entry StallGuard::Register(grpc::CallbackServerContext& context) {
  MutexLock lock(&mutex_);
  watches_.emplace_front();
  watches_.front().context = &context;
  return {this, watches_.begin()};
}

void StallGuard::Unregister(std::list<Watch>::iterator watch) {
  MutexLock lock(&mutex_);
  watches_.erase(watch);
}

void StallGuard::SweepUntilStopped() {
  MutexLock lock(&mutex_);
  while (!stop_) {
    if (stop_changed_.WaitFor(&mutex_,
                              absl::ToChronoNanoseconds(tick_length_))) {
      continue;
    }
    const uint64_t now = ++tick_;
    for (Watch& watch : watches_) {
      const uint64_t armed_at_tick = watch.armed_at_tick;
      if (armed_at_tick != 0 && now > armed_at_tick + kTicksPerLimit - 1) {
        watch.armed_at_tick = 0;
        ++stalled_count_;
        // Under the lock, which keeps the context alive; TryCancel() only
        // queues the cancellation.
        watch.context->TryCancel();
      }
    }
  }
}

}  // namespace quire
