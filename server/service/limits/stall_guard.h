// SPDX-License-Identifier: GPL-3.0-or-later
//
// Ends calls whose client has stopped reading.
#ifndef QUIRE_SERVER_SERVICE_LIMITS_STALL_GUARD_H_
#define QUIRE_SERVER_SERVICE_LIMITS_STALL_GUARD_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"

#include "codecs/base/mutex.h"
#include "server/service/base/thread_shard.h"

namespace quire {

// HTTP/2 flow control lets a client keep an answer in the server's memory
// indefinitely on a live connection. This cancels calls whose answer has waited
// longer than a limit.
// Thread-safe. All entries must be destroyed before the guard.
class StallGuard {
 public:
  // Stalled calls end between `limit` and 9/8 of `limit`.
  // REQUIRES: limit > 0.
  explicit StallGuard(absl::Duration limit);
  ~StallGuard();

  // A call watched from construction to destruction; guard and context must
  // outlive it. Thread-safe.
  class Entry {
   public:
    Entry(StallGuard& guard, grpc::CallbackServerContext& context);
    ~Entry();

    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    void Arm() { armed_at_tick_ = guard_.tick_ + 1; }

    void Disarm() { armed_at_tick_ = 0; }

   private:
    friend class StallGuard;

    StallGuard& guard_;
    grpc::CallbackServerContext& context_;
    const size_t shard_index_;
    // Sweep tick from which the answer waits; 0: none does.
    std::atomic<uint64_t> armed_at_tick_{0};
    // Neighbours in the list of the shard, under its lock.
    Entry* previous_ = nullptr;
    Entry* next_ = nullptr;
  };

  uint64_t stalled_count() const { return stalled_count_; }

 private:
  // Ticks from arming to cancelling.
  static constexpr uint64_t kTicksPerLimit = 8;

  // Entries of the threads of one shard, in an intrusive list: a call allocates
  // nothing and seldom waits for another.
  struct alignas(64) Shard {
    Mutex mutex;
    Entry* first ABSL_GUARDED_BY(mutex) = nullptr;
  };

  void SweepUntilStopped() ABSL_LOCKS_EXCLUDED(mutex_);
  void Sweep(uint64_t now);

  const absl::Duration tick_length_;
  std::atomic<uint64_t> tick_{0};
  std::atomic<uint64_t> stalled_count_{0};
  Mutex mutex_;
  CondVar stop_changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::array<Shard, kThreadShardCount> shards_;
  std::thread sweeper_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LIMITS_STALL_GUARD_H_
