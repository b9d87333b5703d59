// SPDX-License-Identifier: Apache-2.0
//
// Connections and requests, by libmicrohttpd. One thread accepts and watches
// connections, one speaks HTTP and never blocks, two pools make the calls.
//
// A request moves between the HTTP thread and a pool: while a pool works for
// it, its connection is suspended, so that only one thread uses it at any time.
#ifndef QUIRE_CLIENT_HTTP_HTTP_DAEMON_H_
#define QUIRE_CLIENT_HTTP_HTTP_DAEMON_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "client/http/access_log.h"
#include "client/http/bodies/memory_budget.h"
#include "client/http/gateway.h"
#include "client/http/gateway_metrics.h"
#include "client/http/request/request_head.h"

namespace quire {

struct DaemonOptions {
  // HOST:PORT or unix:PATH.
  std::string listen_address = "127.0.0.1:7480";
  // The same, for /metrics, /healthz and /readyz; empty: none.
  std::string admin_address;
  // Accept other addresses than those of this machine.
  bool accepts_remote = false;
  // Empty host list: the names of the loopback interface.
  RequestRules rules;

  // Connections in total and per address; unix sockets are one address.
  uint32_t connections_max = 4096;
  uint32_t address_connections_max = 4096;
  // Bound on the request line and the headers, which each connection has memory
  // for.
  size_t header_size_bytes = size_t{16} << 10;
  // From accepting a connection, or the end of its last request, to the end of
  // the next header. At least a second.
  absl::Duration header_timeout = absl::Seconds(10);
  // Without a byte that the client sends or takes. Whole seconds, at least 1.
  absl::Duration idle_timeout = absl::Seconds(30);
  // Threads for calls; those for pages and lists hold more memory.
  int threads = 8;
  int heavy_threads = 1;
};

// Thread-safe.
class HttpDaemon {
 public:
  // All but `options` must outlive the daemon; `log` may be null.
  // Errors: InvalidArgument     an address; one that others can reach, without
  //                             accepts_remote.
  //         FailedPrecondition  it cannot listen.
  //         ResourceExhausted   the system gives no thread or descriptor.
  static absl::StatusOr<std::unique_ptr<HttpDaemon>> Start(
      DaemonOptions options, Gateway* gateway, MemoryBudget* budget,
      GatewayMetrics* metrics, AccessLog* log);

  // REQUIRES: Drain() returned true.
  virtual ~HttpDaemon() = default;

  // Stops listening, lets requests end for at most `timeout`, then cuts their
  // connections. Blocks. Returns false if a call is still running: then the
  // process must end without destroying the daemon.
  virtual bool Drain(absl::Duration timeout) = 0;

  // With the ports that they got.
  virtual std::string address() const = 0;
  virtual std::string admin_address() const = 0;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_HTTP_DAEMON_H_
