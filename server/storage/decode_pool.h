// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_STORAGE_DECODE_POOL_H_
#define QUIRE_SERVER_STORAGE_DECODE_POOL_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"

#include "codecs/base/mutex.h"

namespace quire {

// A fixed number of threads that run tasks in the order of their arrival. The
// queue has no bound of its own: tasks come from reads that were dispatched, so
// what bounds those (depth, memory, pending fetches) bounds it.
// Thread-safe.
class DecodePool {
 public:
  using Task = std::function<void()>;

  // `thread_count` 0: one for each core.
  // Errors: ResourceExhausted  the system gives no more threads.
  static absl::StatusOr<std::unique_ptr<DecodePool>> Create(
      uint32_t thread_count);

  // Runs what is queued, then joins the threads.
  // REQUIRES: no Add() runs or follows, except from tasks.
  ~DecodePool();

  // Never blocks. `tasks` is emptied.
  void Add(std::vector<Task>& tasks) ABSL_LOCKS_EXCLUDED(mutex_);

  // How long the threads would take to run what waits, by what the tasks before
  // took; 0 if nothing does.
  std::chrono::nanoseconds Backlog() const ABSL_LOCKS_EXCLUDED(mutex_);

  size_t thread_count() const { return threads_.size(); }

 private:
  DecodePool() = default;
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);

  mutable Mutex mutex_;
  CondVar work_;
  std::deque<Task> queue_ ABSL_GUARDED_BY(mutex_);
  uint32_t busy_threads_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t idle_threads_ ABSL_GUARDED_BY(mutex_) = 0;
  // Moves towards each task's by a sixteenth of the difference.
  std::chrono::nanoseconds mean_task_time_ ABSL_GUARDED_BY(mutex_){0};
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Written before and joined after all else.
  std::vector<std::thread> threads_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_DECODE_POOL_H_
