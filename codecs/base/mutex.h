// SPDX-License-Identifier: Apache-2.0
//
// A mutex for both checkers: clang's thread-safety analysis through its
// annotations, and ThreadSanitizer because it wraps std::mutex. (Debian's
// abseil is built without ThreadSanitizer, so the sanitizer sees no order
// between holders of an absl::Mutex and reports false races.)
#ifndef QUIRE_CODECS_BASE_MUTEX_H_
#define QUIRE_CODECS_BASE_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"

namespace quire {

// Not recursive, not fair; within one process. The locking thread must unlock
// it, before its destruction. Prefer MutexLock, which cannot forget. Mark the
// fields that it guards ABSL_GUARDED_BY(it) and functions that lock it
// ABSL_LOCKS_EXCLUDED(it): clang then checks all callers at compile time.
class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  // Blocks until no other thread holds it. REQUIRES: this thread does not hold
  // it.
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }

  // REQUIRES: this thread holds it.
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a mutex, which must outlive it, during a scope.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex)
      : mutex_(mutex) {
    mutex_->Lock();
  }

  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }

  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// Condition variable for changes under a mutex; all threads that wait at the
// same time must use the same mutex. Waits may end without a notification:
// always wait in a loop that checks the condition. Thread-safe; destroy it when
// no thread waits.
class CondVar {
 public:
  // Releases the mutex while it waits, and holds it again on return.
  void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }

  // The same for at most `timeout`, by a monotonic clock. Returns false if the
  // time passed without a notification.
  bool WaitFor(Mutex* mutex, std::chrono::nanoseconds timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    const std::cv_status status = condition_.wait_for(lock, timeout);
    lock.release();
    return status == std::cv_status::no_timeout;
  }

  // Wakes one or all of the threads that wait now. The mutex need not be held,
  // but the change must have been made under it.
  void NotifyOne() { condition_.notify_one(); }

  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_MUTEX_H_
