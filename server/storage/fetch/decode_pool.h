// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_STORAGE_FETCH_DECODE_POOL_H_
#define QUIRE_SERVER_STORAGE_FETCH_DECODE_POOL_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"

#include "server/storage/base/moving_average.h"
#include "server/storage/base/turn_queue.h"
#include "server/storage/base/worker_threads.h"

namespace quire {

// A fixed number of threads that run tasks: decoding, and work of the service
// that is too long for gRPC's threads. Clients take turns (TurnQueue); the
// tasks of one client run in order of arrival. The queue has no
// limit of its own: tasks come from dispatched reads, whose limits (depth,
// memory, pending fetches) bound it.
// Thread-safe.
class DecodePool {
 public:
  struct Task {
    std::function<void()> run;
    // See BlockFetch::client_id.
    uint64_t client_id = 0;
    // Text to decode or to encode, in bytes.
    uint64_t cost = 0;
  };

  // `thread_count` 0: UsableCores(), read at this time.
  // Errors: ResourceExhausted  no more threads available.
  static absl::StatusOr<std::unique_ptr<DecodePool>> Create(
      uint32_t thread_count);

  // Runs all queued tasks, then joins the threads.
  // REQUIRES: no Add() runs or follows, except from tasks.
  ~DecodePool() = default;

  // Does not wait for the tasks. `tasks` is emptied.
  void Add(std::vector<Task>& tasks);
  void Add(Task task);

  // Returns the estimated time to run the waiting tasks, from the times of
  // earlier ones; 0 if none wait.
  std::chrono::nanoseconds Backlog() const;

  // True if the last kTasksOfOneMax tasks added were not all of one client. The
  // clients then take turns: a new task may run long before Backlog() ends.
  bool serves_several_clients() const {
    return tasks_of_one_.load(std::memory_order_relaxed) < kTasksOfOneMax;
  }

  // Tasks that no thread has taken yet.
  size_t queue_length() const { return threads_->queue_length(); }

  size_t thread_count() const { return threads_->thread_count(); }

 private:
  static constexpr uint32_t kTasksOfOneMax = 64;

  DecodePool() = default;
  void NoteClient(uint64_t client_id);
  void Run(Task& task);

  MovingAverage task_time_;
  // Client of the last task added, and how many of the last tasks, at most
  // kTasksOfOneMax, were all of that client. Approximate.
  std::atomic<uint64_t> last_client_id_{0};
  std::atomic<uint32_t> tasks_of_one_{kTasksOfOneMax};
  using Threads = WorkerThreads<Task, TurnQueue<Task>>;

  std::unique_ptr<Threads> threads_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_FETCH_DECODE_POOL_H_
