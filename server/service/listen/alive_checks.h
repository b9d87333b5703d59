// SPDX-License-Identifier: GPL-3.0-or-later
//
// Calls of a server to itself, through its clients' socket, which show that it
// still answers.
#ifndef QUIRE_SERVER_SERVICE_ALIVE_CHECKS_H_
#define QUIRE_SERVER_SERVICE_ALIVE_CHECKS_H_

#include <functional>
#include <list>
#include <memory>

#include "absl/base/thread_annotations.h"

#include "codecs/base/mutex.h"
#include "server/service/listen/connection_listener.h"

namespace quire {

// Thread-safe.
class AliveChecks {
 public:
  AliveChecks();

  // Cancels the calls in flight and waits for their end.
  // REQUIRES: no call is started meanwhile.
  ~AliveChecks() ABSL_LOCKS_EXCLUDED(mutex_);
  AliveChecks(const AliveChecks&) = delete;
  AliveChecks& operator=(const AliveChecks&) = delete;

  // Requests the health of the whole server, and returns at once. `answered`
  // runs on a thread of gRPC if the answer is good, within a minute. Closes the
  // connections of calls that have ended.
  void Start(std::unique_ptr<OwnConnection> connection,
             std::function<void()> answered) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Call;
  using Calls = std::list<std::unique_ptr<Call>>;

  // Removes the calls that have ended from calls_, and returns them.
  Calls TakeEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  CondVar ended_;
  // Ended ones stay until another thread than gRPC's destroys them: closing the
  // process's last channel joins gRPC's threads, which share a queue with the
  // server, and frees the queue.
  Calls calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_ALIVE_CHECKS_H_
