// SPDX-License-Identifier: GPL-3.0-or-later
//
// Connections whose TLS handshake failed, by reason.
#ifndef QUIRE_SERVER_SERVICE_SECURITY_HANDSHAKE_FAILURES_H_
#define QUIRE_SERVER_SERVICE_SECURITY_HANDSHAKE_FAILURES_H_

#include <array>
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

// gRPC tells of a failed handshake in its own log alone. So that log is taken
// over: lines about handshakes are counted, all others dropped. Thread-safe.
class HandshakeFailures {
 public:
  // Takes over gRPC's log for the whole process, unless the environment asks
  // for that log (GRPC_VERBOSITY). The only one that does, for gRPC has one
  // log.
  static HandshakeFailures& OfProcess();

  // Gets a line for each reason, at most once a minute; empty: nobody.
  void SetSay(SayLine say) ABSL_LOCKS_EXCLUDED(mutex_);

  // A line of gRPC's log.
  void Take(absl::string_view message, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // All reasons there are, and how often each was met.
  std::vector<std::pair<std::string, uint64_t>> counts() const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Failure {
    uint64_t count = 0;
    uint64_t said_count = 0;
    absl::Time next_line = absl::InfinitePast();
  };

  static constexpr size_t kReasonCount = 6;

  mutable Mutex mutex_;
  SayLine say_ ABSL_GUARDED_BY(mutex_);
  std::array<Failure, kReasonCount> failures_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_SECURITY_HANDSHAKE_FAILURES_H_
