// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_SERVICE_CALLS_SERIAL_CALL_H_
#define QUIRE_SERVER_SERVICE_CALLS_SERIAL_CALL_H_

#include "absl/base/thread_annotations.h"

#include "codecs/base/mutex.h"

namespace quire {

// Core of a streaming call: several threads (gRPC's and the store's) change its
// state, and one thread at a time acts on all changes.
class SerialCall {
 public:
  virtual ~SerialCall() = default;

 protected:
  // Does everything possible now, without blocking. Returns true if the call is
  // over: no read, write or fetch is in flight, and none will start.
  virtual bool Act() ABSL_LOCKS_EXCLUDED(mutex_) = 0;
  // Called once, after Act() returned true. gRPC may destroy the call from then
  // on.
  virtual void FinishCall() ABSL_LOCKS_EXCLUDED(mutex_) = 0;

  // Applies `change` with mutex_ held. Then acts, unless another thread is
  // acting and will see this change. The call may be destroyed when this
  // returns: callers outside a gRPC reaction must not touch it afterwards.
  template <typename Change>
  void Update(Change change) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      MutexLock lock(&mutex_);
      change();
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
    } while (!Act());
    // `acting_` stays set: later events only change the state.
    FinishCall();
  }

  Mutex mutex_;

 private:
  bool acting_ ABSL_GUARDED_BY(mutex_) = false;
  bool act_again_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_SERIAL_CALL_H_
