// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_SERVICE_CALLS_SERIAL_CALL_H_
#define QUIRE_SERVER_SERVICE_CALLS_SERIAL_CALL_H_

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

#include "codecs/base/memory_guard.h"
#include "codecs/base/mutex.h"

namespace quire {

// The core of a streaming call: events from several threads (gRPC's, the
// store's) change its state, and one thread at a time acts upon it for all.
// Where an allocation fails in any of this, the call ends with
// ResourceExhausted: gRPC and the store drop exceptions, and the call would
// never end.
class SerialCall {
 public:
  virtual ~SerialCall() = default;

 protected:
  // Does all that can be done now, without blocking; true if the call is over:
  // no read, write or fetch is under way and none will be begun.
  // May throw std::bad_alloc, if it then has begun nothing that does not end:
  // no read, write or fetch counts as under way unless it is. Must not throw
  // once the call has failed, unless some of these are.
  virtual bool Act() ABSL_LOCKS_EXCLUDED(mutex_) = 0;
  // Makes `status` the end of the call: from then on Act() begins nothing.
  // False if it has failed before, which then counts. Must not throw.
  virtual bool Fail(absl::Status status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // Called once, when Act() said so; gRPC may destroy the call from then on.
  virtual void FinishCall() ABSL_LOCKS_EXCLUDED(mutex_) = 0;

  // Applies `change`, with mutex_ held, then acts, unless another thread is at
  // it already and will act upon this change too. The call may be gone when
  // this returns, so callers outside of a gRPC reaction must not touch it
  // afterwards.
  template <typename Change>
  void Update(Change change) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      MutexLock lock(&mutex_);
      absl::Status status =
          OrNoMemory("go on with a call", [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
            change();
            return absl::OkStatus();
          });
      if (!status.ok()) {
        Fail(std::move(status));
      }
      act_again_ = true;
      if (acting_) {
        return;
      }
      acting_ = true;
    }
    do {
      MutexLock lock(&mutex_);
      if (!act_again_) {
        acting_ = false;
        return;
      }
      act_again_ = false;
      // The lock ends with this block, before Act().
    } while (!ActOrFail());
    // `acting_` stays set: later events change the state and nothing else.
    FinishCall();
  }

  Mutex mutex_;

 private:
  bool ActOrFail() ABSL_LOCKS_EXCLUDED(mutex_) {
    bool is_over = false;
    absl::Status status = OrNoMemory("go on with a call", [&] {
      is_over = Act();
      return absl::OkStatus();
    });
    if (!status.ok()) {
      MutexLock lock(&mutex_);
      // To end what is under way; if that fails as well, it ends by itself.
      act_again_ |= Fail(std::move(status));
    }
    return is_over;
  }

  bool acting_ ABSL_GUARDED_BY(mutex_) = false;
  bool act_again_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_SERIAL_CALL_H_
