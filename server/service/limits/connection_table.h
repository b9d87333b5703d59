// SPDX-License-Identifier: GPL-3.0-or-later
//
// Open connections of clients, and limits on them.
#ifndef QUIRE_SERVER_SERVICE_LIMITS_CONNECTION_TABLE_H_
#define QUIRE_SERVER_SERVICE_LIMITS_CONNECTION_TABLE_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

#include "codecs/base/monotonic_time.h"
#include "codecs/base/mutex.h"

namespace quire {

struct ConnectionLimits {
  // Connections of one client at a time. At least 1.
  size_t client_connections_max = 1;
  // The system assigns the lowest free descriptor, so descriptors from this one
  // on are in use only while nearly all are. A connection that gets one
  // replaces a silent one.
  int crowded_descriptor = 0;
  // Connections from this descriptor on are refused.
  int last_descriptor = 0;
  // Reserves memory for this many connections; returns the number that have
  // memory now (ConnectionMemory::Fit()). Unset: there is enough for all.
  std::function<size_t(size_t)> reserve_memory = nullptr;
  // A connection without a call for this time is closed.
  absl::Duration silence_max = absl::Minutes(2);
};

// Reserves a quarter of the process' descriptors for archives, logs and
// administration, and gives one client half of the rest, or of the connections
// that have memory, `connections_max`.
ConnectionLimits LimitConnections(absl::Duration silence_max,
                                  size_t connections_max,
                                  std::function<size_t(size_t)> reserve_memory);

// Result of adding a connection.
enum class ConnectionVerdict {
  kTaken,
  kClientHasItsShare,
  kNoDescriptors,
  kNoMemory
};

// gRPC reports no closed connections. A connection is therefore identified by
// the file behind its descriptor: it has ended once that is another file, or
// none.
//
// A connection is silent until its first call. Silent ones are closed early,
// oldest first, when descriptors or memory are scarce.
// Thread-safe, except that one thread at a time may call Add() and EndSilent().
class ConnectionTable {
 public:
  using Clock = std::function<absl::Time()>;

  explicit ConnectionTable(const ConnectionLimits& limits,
                           Clock clock = MonotonicNow)
      : limits_(limits),
        clock_(std::move(clock)),
        reserved_count_(limits_.reserve_memory == nullptr
                            ? std::numeric_limits<size_t>::max()
                            : 0) {}

  // Adds a connection before gRPC gets it. `peer` is gRPC's name for it;
  // `client` is charged for it. The caller closes `fd` unless the result is
  // kTaken.
  ConnectionVerdict Add(int fd, std::string peer, std::string client)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Records a call on the connection of `peer`. Costs one load of an integer if
  // no connection is silent.
  void CallBegan(const std::string& peer) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the client of connection "fd:NUMBER", as given to Add(); else
  // `peer`.
  std::string ClientOf(std::string peer) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Closes connections that were silent for too long. Returns the time until
  // the next one is due; infinite if there is none.
  absl::Duration EndSilent() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the number of open connections.
  size_t Count() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the number of connections so far with `verdict`.
  uint64_t verdict_count(ConnectionVerdict verdict) const {
    return verdicts_[static_cast<size_t>(verdict)].load();
  }

  // Returns the number of connections closed for silence so far.
  uint64_t silent_ended_count() const { return silent_ended_count_.load(); }

 private:
  struct Connection {
    ino_t file = 0;
    std::string peer;
    std::string client;
    // Key in `silent_`; 0 after the first call.
    uint64_t silent_since = 0;
  };

  struct Silent {
    int fd;
    absl::Time since;
  };

  using ByFd = absl::flat_hash_map<int, Connection>;

  // Reserves memory for the connections that are open, and `more`.
  void FitMemory(size_t more) ABSL_LOCKS_EXCLUDED(mutex_);
  ConnectionVerdict Place(int fd, const std::string& client)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(int fd) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t CountOf(const std::string& client) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Closes the oldest silent connection of `client`; of all if null.
  bool EndOldestSilent(const std::string* client)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(int fd) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ConnectionLimits limits_;
  const Clock clock_;
  std::atomic<size_t> silent_count_ = 0;
  std::atomic<uint64_t> silent_ended_count_ = 0;
  std::atomic<uint64_t> verdicts_[4] = {};
  mutable Mutex mutex_;
  ByFd connections_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, size_t> count_by_client_
      ABSL_GUARDED_BY(mutex_);
  // In order of arrival.
  std::map<uint64_t, Silent> silent_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, int> silent_by_peer_ ABSL_GUARDED_BY(mutex_);
  uint64_t arrivals_ ABSL_GUARDED_BY(mutex_) = 0;
  // All connections are not checked again before this time, as it costs too
  // much.
  absl::Time next_look_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  // Connections that have memory.
  size_t reserved_count_ ABSL_GUARDED_BY(mutex_);
  // Memory of ended connections is returned then.
  absl::Time next_fit_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LIMITS_CONNECTION_TABLE_H_
