// SPDX-License-Identifier: Apache-2.0
//
// Threads for work that blocks.
#ifndef QUIRE_CLIENT_HTTP_WORKER_POOL_H_
#define QUIRE_CLIENT_HTTP_WORKER_POOL_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "codecs/base/mutex.h"

namespace quire {

// A fixed number of threads that run jobs in order of arrival. Callers bound
// the number of jobs: each connection has at most one. Thread-safe.
class WorkerPool {
 public:
  using Job = std::function<void()>;

  // Errors: ResourceExhausted  the system gives no thread.
  static absl::StatusOr<std::unique_ptr<WorkerPool>> Start(int thread_count);

  // Runs the remaining jobs first.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Does not block.
  void Submit(Job job) ABSL_LOCKS_EXCLUDED(mutex_);

  // Jobs that wait for a thread.
  size_t queue_size() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits for `delay` on the calling thread, or until the pool ends, and
  // returns true. Returns false at once if the thread is not one of a pool, or
  // is the only one of its pool that does not wait so: one stays free for other
  // jobs.
  static bool WaitOnThread(absl::Duration delay);

 private:
  WorkerPool() = default;

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  bool Wait(absl::Duration delay) ABSL_LOCKS_EXCLUDED(mutex_);

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Job> jobs_ ABSL_GUARDED_BY(mutex_);
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;
  CondVar stopped_;
  int thread_count_ ABSL_GUARDED_BY(mutex_) = 0;
  // In Wait().
  int waiting_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_WORKER_POOL_H_
