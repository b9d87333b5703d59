// SPDX-License-Identifier: GPL-3.0-or-later
//
// Threads that process a shared queue: for decoding, and for reading with
// pread.
#ifndef QUIRE_SERVER_STORAGE_BASE_WORKER_THREADS_H_
#define QUIRE_SERVER_STORAGE_BASE_WORKER_THREADS_H_

#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/mutex.h"

namespace quire {

// A queue in order of arrival. Thread-compatible.
template <typename Item>
class ArrivalQueue {
 public:
  void Push(Item item) { items_.push_back(std::move(item)); }

  // REQUIRES: !empty().
  Item Pop() {
    Item item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

  size_t size() const { return items_.size(); }

  bool empty() const { return items_.empty(); }

 private:
  std::deque<Item> items_;
};

// A fixed number of threads that process items in the order of `Queue`, of the
// same interface as ArrivalQueue. The queue is unbounded; the callers bound
// their items.
// Thread-safe.
template <typename Item, typename Queue = ArrivalQueue<Item>>
class WorkerThreads {
 public:
  // Called on the threads without a lock; may call Add(). May move from the
  // item, which is destroyed before the thread takes the next.
  using Work = std::function<void(Item&)>;

  // `name`: thread name for the system, at most 15 characters.
  // Errors: ResourceExhausted  the system cannot start more threads.
  static absl::StatusOr<std::unique_ptr<WorkerThreads>> Start(
      const char* name, uint32_t thread_count, Work work) {
    std::unique_ptr<WorkerThreads> workers(new WorkerThreads(std::move(work)));
    try {
      for (uint32_t i = 0; i < thread_count; ++i) {
        workers->threads_.emplace_back([w = workers.get(), name] {
          pthread_setname_np(pthread_self(), name);
          w->Run();
        });
      }
    } catch (const std::system_error& error) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "cannot start ", thread_count, " threads \"", name, "\": ",
          error.what(), "; raise the limit on threads or configure fewer"));
    }
    return workers;
  }

  // Processes all queued items, then joins the threads.
  // REQUIRES: no Add() runs or follows, except from the work itself.
  ~WorkerThreads() {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
    }
    work_arrived_.NotifyAll();
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }

  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;

  // Adds [begin, end). Does not wait for the work.
  template <typename Iterator>
  void Add(Iterator begin, Iterator end) ABSL_LOCKS_EXCLUDED(mutex_) {
    size_t wake_count = 0;
    {
      MutexLock lock(&mutex_);
      const size_t length_before = queue_.size();
      for (; begin != end; ++begin) {
        queue_.Push(*begin);
      }
      wake_count =
          std::min<size_t>(idle_threads_, queue_.size() - length_before);
    }
    for (size_t i = 0; i < wake_count; ++i) {
      work_arrived_.NotifyOne();
    }
  }

  // Items that no thread has taken yet.
  size_t queue_length() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return queue_.size();
  }

  size_t thread_count() const { return threads_.size(); }

 private:
  explicit WorkerThreads(Work work) : work_(std::move(work)) {}

  void Run() ABSL_LOCKS_EXCLUDED(mutex_) {
    mutex_.Lock();
    while (true) {
      // A busy thread may add items: none exits while one is busy.
      while (queue_.empty() && !(stopping_ && busy_threads_ == 0)) {
        ++idle_threads_;
        work_arrived_.Wait(&mutex_);
        --idle_threads_;
      }
      if (queue_.empty()) {
        break;
      }
      ++busy_threads_;
      {
        Item item = queue_.Pop();
        mutex_.Unlock();
        work_(item);
        // Destroys the item before locking again.
      }
      mutex_.Lock();
      --busy_threads_;
      if (stopping_ && busy_threads_ == 0) {
        work_arrived_.NotifyAll();
      }
    }
    mutex_.Unlock();
  }

  const Work work_;
  mutable Mutex mutex_;
  CondVar work_arrived_;
  Queue queue_ ABSL_GUARDED_BY(mutex_);
  uint32_t busy_threads_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t idle_threads_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Written before any other call, joined after all of them.
  std::vector<std::thread> threads_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_BASE_WORKER_THREADS_H_
