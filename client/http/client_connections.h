// SPDX-License-Identifier: Apache-2.0
//
// The connections of clients: how many there may be, and for how long they may
// be without a request.
#ifndef QUIRE_CLIENT_HTTP_CLIENT_CONNECTIONS_H_
#define QUIRE_CLIENT_HTTP_CLIENT_CONNECTIONS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

#include "client/http/bodies/memory_budget.h"
#include "client/http/gateway_metrics.h"
#include "codecs/base/mutex.h"

namespace quire {

inline constexpr uint32_t kAdminConnectionsMax = 16;

// A connection, from accept() to the end of libmicrohttpd's use.
struct ClientConnection {
  int fd = -1;
  std::string address;
  bool is_admin = false;
  MemoryCharge charge;
  // Target as received, and its position; used by the HTTP thread alone.
  std::string target;
  const char* raw_target = nullptr;
  // Used by ClientConnections alone.
  bool has_request = false;
  std::chrono::steady_clock::time_point header_deadline;
};

struct ClientConnectionLimits {
  // In total and per address; those of the admin port have a limit of their
  // own.
  uint32_t connections_max = 0;
  uint32_t address_connections_max = 0;
  // Memory of each connection.
  size_t size_bytes = 0;
  // From accepting a connection, or the end of its last request, to the end of
  // the next header.
  absl::Duration header_timeout;
};

// Thread-safe.
class ClientConnections {
 public:
  // `budget` and `metrics` must outlive this.
  ClientConnections(const ClientConnectionLimits& limits, MemoryBudget* budget,
                    GatewayMetrics* metrics)
      : limits_(limits), budget_(budget), metrics_(metrics) {}

  // Adds a socket that was accepted. False: it is over a limit, and was
  // answered and closed.
  bool Add(int fd, std::string address, bool is_admin)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes a connection, whose descriptor is closed or will be.
  void Forget(int fd) ABSL_LOCKS_EXCLUDED(mutex_);
  // Valid until Forget(). REQUIRES: it was added.
  ClientConnection* Find(int fd) ABSL_LOCKS_EXCLUDED(mutex_);

  // Between these calls the connection may take any time.
  void BeginRequest(ClientConnection& connection) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndRequest(ClientConnection& connection) ABSL_LOCKS_EXCLUDED(mutex_);

  // Cuts connections whose header is late; with `closes_idle` all without a
  // request, except those of the admin port.
  void Sweep(bool closes_idle) ABSL_LOCKS_EXCLUDED(mutex_);
  void CutAll() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::optional<Refusal> Admit(ClientConnection& connection)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ClientConnectionLimits limits_;
  MemoryBudget* const budget_;
  GatewayMetrics* const metrics_;
  Mutex mutex_;
  std::map<int, std::unique_ptr<ClientConnection>> connections_
      ABSL_GUARDED_BY(mutex_);
  // Connections that are not of the admin port, in total and by address.
  uint32_t connection_count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t admin_connection_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, uint32_t> address_counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_CLIENT_CONNECTIONS_H_
