// SPDX-License-Identifier: Apache-2.0
//
// A mutex that both checkers understand: clang's thread-safety analysis through
// its annotations, and ThreadSanitizer because it is std::mutex underneath.
// (Debian's abseil is built without ThreadSanitizer, so the sanitizer sees no
// order between holders of an absl::Mutex and reports races that are none.)
#ifndef QUIRE_CODECS_BASE_MUTEX_H_
#define QUIRE_CODECS_BASE_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"

namespace quire {

// Not recursive, not fair; of no use between processes. The thread that locked
// it unlocks it, before it is destroyed. Prefer MutexLock, which cannot forget.
// Fields that it guards carry ABSL_GUARDED_BY(it), functions that take it
// ABSL_LOCKS_EXCLUDED(it): clang then holds all callers to it at compile time.
class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  // Blocks until no other thread holds it. REQUIRES: nor does this one.
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }

  // REQUIRES: this thread holds it.
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a mutex, which must outlive it, for the length of a scope.
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

// Where threads wait for what others change under a mutex; all that wait at the
// same moment do so with the same mutex. Waits may end without a notification:
// always wait in a loop that looks at what is waited for. Thread-safe; to be
// destroyed when no thread waits.
class CondVar {
 public:
  // Gives the mutex up while it waits, and holds it again when it returns.
  void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }

  // The same for at most so long, by a monotonic clock. False if the
  // time passed without a notification.
  bool WaitFor(Mutex* mutex, std::chrono::nanoseconds timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    const std::cv_status status = condition_.wait_for(lock, timeout);
    lock.release();
    return status == std::cv_status::no_timeout;
  }

  // Wake one or all of those that wait now, not those that come later. The
  // mutex need not be held, but the change must have been made under it.
  void NotifyOne() { condition_.notify_one(); }

  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_MUTEX_H_
