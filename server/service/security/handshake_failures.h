// SPDX-License-Identifier: GPL-3.0-or-later
//
// Connections with failed TLS handshakes, by reason, and those that gRPC ended
// for memory.
#ifndef QUIRE_SERVER_SERVICE_SECURITY_HANDSHAKE_FAILURES_H_
#define QUIRE_SERVER_SERVICE_SECURITY_HANDSHAKE_FAILURES_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "codecs/base/mutex.h"
#include "server/service/base/log_line.h"

namespace quire {

// gRPC reports failed handshakes, and idle connections that it ends when its
// ResourceQuota is exhausted, only in its own log. This replaces that log: it
// counts lines about them and drops all others. Thread-safe.
class HandshakeFailures {
 public:
  // Replaces gRPC's log for the whole process, unless the environment requests
  // that log (GRPC_VERBOSITY). gRPC has one log, so this is the only instance
  // that does.
  static HandshakeFailures& OfProcess();

  // Receives a line per reason, at most once a minute.
  void SetLog(LogSink log) ABSL_LOCKS_EXCLUDED(mutex_);

  // Processes a line of gRPC's log, at a time of MonotonicNow().
  void Take(absl::string_view message, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the number of idle connections that gRPC ended for memory.
  uint64_t crowded_out_count() const { return crowded_out_count_.load(); }

  // All reasons with their counts.
  std::vector<std::pair<std::string, uint64_t>> counts() const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Failure {
    uint64_t count = 0;
    uint64_t said_count = 0;
    absl::Time next_line = absl::InfinitePast();
  };

  static constexpr size_t kReasonCount = 6;

  std::atomic<uint64_t> crowded_out_count_ = 0;
  mutable Mutex mutex_;
  LogSink log_ ABSL_GUARDED_BY(mutex_) = DropLogLine;
  std::array<Failure, kReasonCount> failures_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_SECURITY_HANDSHAKE_FAILURES_H_
