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

// Contents of the pages. Called on any thread, concurrently.
struct AdminPages {
  // Metrics in Prometheus' text format.
  std::function<std::string()> metrics;
  // True if clients should be sent here.
  std::function<bool()> is_ready;
};

// Answers GET and HEAD:
//
//   /metrics  the metrics
//   /healthz  200 while the process answers; otherwise restart it
//   /readyz   200 if all archives were opened or left out, one of them can be
//             read and the server does not drain, else 503: send no clients
//
// Neither encrypted nor authenticated. Each connection has its own thread of
// libmicrohttpd, so that none waits for another. Thread-safe.
class AdminServer {
 public:
  // Listens on `address`, HOST:PORT; port 0 selects a free port.
  // Errors: InvalidArgument     malformed.
  //         FailedPrecondition  it cannot listen there; states the reason.
  //         ResourceExhausted   no descriptor or thread available.
  static absl::StatusOr<std::unique_ptr<AdminServer>> Open(
      const std::string& address, const AdminPages& pages);

  // Closes its port and its connections at once, whether or not clients read.
  // Waits only for pages in preparation.
  virtual ~AdminServer() = default;

  // Returns the address with the actual port.
  virtual const std::string& address() const = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_ADMIN_SERVER_H_
