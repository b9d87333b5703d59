// SPDX-License-Identifier: GPL-3.0-or-later
//
// Ends calls whose client has stopped reading.
#ifndef QUIRE_SERVER_SERVICE_STALL_GUARD_H_
#define QUIRE_SERVER_SERVICE_STALL_GUARD_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"

#include "codecs/base/mutex.h"

namespace quire {

// HTTP/2 flow control lets a client hold an answer in the server's memory for
// as long as it likes, with its connection alive. This cancels calls whose
// answer has waited longer than a limit.
// Thread-safe. Entries must be gone before the guard is destroyed.
class StallGuard {
 private:
  struct Watch {
    grpc::CallbackServerContext* context = nullptr;
    // Ticks of sweeping since which the answer waits; 0: none does.
    std::atomic<uint64_t> armed_at_tick{0};
  };

 public:
  // Stalled calls end between `limit` and `limit` plus an eighth of it.
  // REQUIRES: limit > 0.
  explicit StallGuard(absl::Duration limit);
  ~StallGuard();

  // A call under watch; the context must outlive it. Thread-safe.
  class Entry {
   public:
    Entry(StallGuard* guard, std::list<Watch>::iterator watch)
        : guard_(guard), watch_(watch) {}

    ~Entry() { guard_->Unregister(watch_); }

    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    void Arm() { watch_->armed_at_tick = guard_->tick_ + 1; }

    void Disarm() { watch_->armed_at_tick = 0; }

   private:
    StallGuard* const guard_;
    const std::list<Watch>::iterator watch_;
  };

  Entry Register(grpc::CallbackServerContext& context)
      ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t stalled_count() const { return stalled_count_; }

 private:
  // Ticks from arming to cancelling.
  static constexpr uint64_t kTicksPerLimit = 8;

  void Unregister(std::list<Watch>::iterator watch) ABSL_LOCKS_EXCLUDED(mutex_);
  void SweepUntilStopped() ABSL_LOCKS_EXCLUDED(mutex_);

  const absl::Duration tick_length_;
  std::atomic<uint64_t> tick_{0};
  std::atomic<uint64_t> stalled_count_{0};
  Mutex mutex_;
  CondVar stop_changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<Watch> watches_ ABSL_GUARDED_BY(mutex_);
  std::thread sweeper_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_STALL_GUARD_H_
