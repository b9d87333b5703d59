// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_SERVICE_CALLS_SERIAL_CALL_H_
#define QUIRE_SERVER_SERVICE_CALLS_SERIAL_CALL_H_

#include "absl/base/thread_annotations.h"

#include "codecs/base/mutex.h"

namespace quire {

// The core of a streaming call: events from several threads (gRPC's, the
// store's) change its state, and one thread at a time acts upon it for all.
class SerialCall {
 public:
  virtual ~SerialCall() = default;

 protected:
  // Does all that can be done now, without blocking; true if the call is over:
  // no read, write or fetch is in flight and none will be begun.
  virtual bool Act() ABSL_LOCKS_EXCLUDED(mutex_) = 0;
  // Called once, when Act() said so; gRPC may destroy the call from then on.
  virtual void FinishCall() ABSL_LOCKS_EXCLUDED(mutex_) = 0;

  // Applies `change`, with mutex_ held, then acts, unless another thread does
  // already and will act upon this change too. The call may be gone when this
  // returns, so callers outside of a gRPC reaction must not touch it
  // afterwards.
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
    // `acting_` stays set: later events change the state and nothing else.
    FinishCall();
  }

  Mutex mutex_;

 private:
  bool acting_ ABSL_GUARDED_BY(mutex_) = false;
  bool act_again_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_SERIAL_CALL_H_
