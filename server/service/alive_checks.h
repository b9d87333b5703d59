// SPDX-License-Identifier: GPL-3.0-or-later
//
// Calls of a server to itself, through its clients' socket, which show that it
// still answers.
#ifndef QUIRE_SERVER_SERVICE_ALIVE_CHECKS_H_
#define QUIRE_SERVER_SERVICE_ALIVE_CHECKS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <set>

#include "absl/base/thread_annotations.h"

#include "codecs/base/mutex.h"
#include "server/service/connection_listener.h"

namespace quire {

// Thread-safe.
class AliveChecks {
 public:
  AliveChecks() = default;

  // Cancels the calls in flight and waits for their end. gRPC's threads for
  // callbacks are those of the server: the server must outlive this object, as
  // a connection that is closed last, on one of these threads, ends them.
  // REQUIRES: no call is started meanwhile.
  ~AliveChecks() ABSL_LOCKS_EXCLUDED(mutex_);
  AliveChecks(const AliveChecks&) = delete;
  AliveChecks& operator=(const AliveChecks&) = delete;

  // Requests the health of the whole server, and returns at once. `answered`
  // runs on a thread of gRPC if the answer is good, within a minute.
  void Start(std::unique_ptr<OwnConnection> connection,
             std::function<void()> answered) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Call;

  void End(std::shared_ptr<Call> call) ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  CondVar ended_;
  // Those that can be cancelled.
  std::set<Call*> calls_ ABSL_GUARDED_BY(mutex_);
  // Includes those whose connection is being closed.
  size_t call_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_ALIVE_CHECKS_H_
