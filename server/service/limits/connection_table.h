// SPDX-License-Identifier: GPL-3.0-or-later
//
// The connections of clients that are open, and bounds on them.
#ifndef QUIRE_SERVER_SERVICE_LIMITS_CONNECTION_TABLE_H_
#define QUIRE_SERVER_SERVICE_LIMITS_CONNECTION_TABLE_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "codecs/base/mutex.h"

namespace quire {

struct ConnectionLimits {
  // Connections of one client at a time. At least 1.
  size_t client_connections_max = 1;
  // The system gives the lowest free descriptor, so those from here on are in
  // use only while nearly all are. A connection that gets one takes the place
  // of a silent one.
  int crowded_descriptor = 0;
  // From here on a connection is refused.
  int last_descriptor = 0;
  // A connection without a call for so long is closed.
  absl::Duration silence_max = absl::Minutes(2);
};

// Leaves a quarter of the descriptors that the process may open to archives,
// logs and administration, and one client half of the rest.
ConnectionLimits LimitConnections(absl::Duration silence_max);

// What was done with a new connection.
enum class ConnectionVerdict { kTaken, kClientHasItsShare, kNoDescriptors };

// gRPC closes connections and tells no one. So a connection is known by the
// file behind its descriptor: it has ended once that is another one, or none.
//
// A connection is silent until its first call. Silent ones are closed early
// where descriptors are scarce, the oldest first.
// Thread-safe.
class ConnectionTable {
 public:
  using Clock = std::function<absl::Time()>;

  explicit ConnectionTable(const ConnectionLimits& limits,
                           Clock clock = absl::Now)
      : limits_(limits), clock_(std::move(clock)) {}

  // Takes in a connection before gRPC gets it. `peer` is the name that gRPC
  // gives it, `client` what its share is counted by. The caller closes `fd`
  // unless it was taken.
  ConnectionVerdict Add(int fd, std::string peer, std::string client)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The connection of `peer` has a call. Costs one load of an integer where no
  // connection is silent.
  void CallBegan(const std::string& peer) ABSL_LOCKS_EXCLUDED(mutex_);

  // The client of a connection "fd:NUMBER", as Add() was given it; else `peer`.
  std::string ClientOf(std::string peer) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Closes connections that were silent for too long. Returns how long until
  // the next is due; infinite if there is none.
  absl::Duration EndSilent() ABSL_LOCKS_EXCLUDED(mutex_);

  // Connections that are open now.
  size_t Count() ABSL_LOCKS_EXCLUDED(mutex_);

  // Connections so far that got that verdict.
  uint64_t verdict_count(ConnectionVerdict verdict) const {
    return verdicts_[static_cast<size_t>(verdict)].load();
  }

  // Connections so far that were closed for their silence.
  uint64_t silent_ended_count() const { return silent_ended_count_.load(); }

 private:
  struct Connection {
    ino_t file = 0;
    std::string peer;
    std::string client;
    // Where it is in `silent_`; 0 once it had a call.
    uint64_t silent_since = 0;
  };

  struct Silent {
    int fd;
    absl::Time since;
  };

  using ByFd = absl::flat_hash_map<int, Connection>;

  ConnectionVerdict Place(int fd, const std::string& client)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(int fd) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t CountOf(const std::string& client) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Closes the oldest silent connection of `client`, of all if that is null.
  bool EndOldestSilent(const std::string* client)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(int fd) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ConnectionLimits limits_;
  const Clock clock_;
  std::atomic<size_t> silent_count_ = 0;
  std::atomic<uint64_t> silent_ended_count_ = 0;
  std::atomic<uint64_t> verdicts_[3] = {};
  mutable Mutex mutex_;
  ByFd connections_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, size_t> count_by_client_
      ABSL_GUARDED_BY(mutex_);
  // In the order of their arrival.
  std::map<uint64_t, Silent> silent_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, int> silent_by_peer_ ABSL_GUARDED_BY(mutex_);
  uint64_t arrivals_ ABSL_GUARDED_BY(mutex_) = 0;
  // Looking at all connections again before this costs too much.
  absl::Time next_look_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LIMITS_CONNECTION_TABLE_H_
