// SPDX-License-Identifier: GPL-3.0-or-later
//
// Health and metrics over plain HTTP, for probes and for Prometheus.
#ifndef QUIRE_SERVER_SERVICE_ADMIN_SERVER_H_
#define QUIRE_SERVER_SERVICE_ADMIN_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace quire {

// Contents of the pages. Called on any thread, several at once.
struct AdminPages {
  // Metrics in Prometheus' text format.
  std::function<std::string()> metrics;
  // True if clients should be sent here.
  std::function<bool()> is_ready;
};

// Answers GET and HEAD:
//
//   /metrics  the metrics
//   /healthz  200 as long as the process answers: restart it if not
//   /readyz   200 if all archives are open and the server does not drain, else
//             503: send no clients
//
// Neither encrypted nor authenticated. Each connection has a thread of
// libmicrohttpd, so that none waits for another. Thread-safe.
class AdminServer {
 public:
  // Listens on `address`, HOST:PORT, where port 0 takes a free one.
  // Errors: InvalidArgument     malformed.
  //         FailedPrecondition  it cannot listen there; says why.
  //         ResourceExhausted   the system gives no descriptor or thread.
  static absl::StatusOr<std::unique_ptr<AdminServer>> Open(
      const std::string& address, const AdminPages& pages);

  // Closes its port and its connections at once, whether or not their clients
  // read. Waits only for pages that are being made.
  virtual ~AdminServer() = default;

  // With the port that it got.
  virtual const std::string& address() const = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_ADMIN_SERVER_H_
