// SPDX-License-Identifier: GPL-3.0-or-later
//
// Users at the other ends of a unix socket's connections.
#ifndef QUIRE_SERVER_SERVICE_LIMITS_UNIX_PEERS_H_
#define QUIRE_SERVER_SERVICE_LIMITS_UNIX_PEERS_H_

#include <sys/types.h>

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"

#include "codecs/base/mutex.h"

namespace quire {

// By the name that gRPC gives a connection. An entry stays until the number of
// its descriptor is used again, so there are never more than open files.
// Thread-safe.
class UnixPeers {
 public:
  // Before gRPC gets the connection.
  void Add(int fd, uid_t user) ABSL_LOCKS_EXCLUDED(mutex_);

  // "unix:user=NUMBER" for a `peer` that was added, else `peer`.
  std::string NameOf(std::string peer) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, uid_t> user_by_peer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LIMITS_UNIX_PEERS_H_
