// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gRPC server of a process: transport, health and reflection.
#ifndef QUIRE_SERVER_SERVICE_GRPC_FRONT_H_
#define QUIRE_SERVER_SERVICE_GRPC_FRONT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"

#include "server/service/limits/connection_table.h"
#include "server/service/listen/connection_listener.h"

namespace quire {

// Call Start() first; from its success on, all others are thread-safe.
class GrpcFront {
 public:
  struct Options {
    // HOST:PORT or unix:PATH.
    std::string listen_address;
    // Time after which a connection is replaced; infinite: never.
    absl::Duration connection_age;
    // False: clients have identities, which neither health nor reflection ask
    // for. There is no reflection, and no health of single archives.
    bool is_open_to_all = true;
  };

  // `service` and `connections` must outlive this object.
  GrpcFront(Options options, grpc::Service& service,
            ConnectionTable& connections);
  // REQUIRES: StopListening() and EndCalls() were called if Start() succeeded.
  ~GrpcFront();
  GrpcFront(const GrpcFront&) = delete;
  GrpcFront& operator=(const GrpcFront&) = delete;

  // Binds the address and starts gRPC. The health of the server and of each of
  // `archives` is NOT_SERVING. Call once.
  // Errors: FailedPrecondition  the address is malformed or in use, or gRPC
  //                             does not start.
  absl::Status Start(
      grpc::ResourceQuota& quota,
      const std::shared_ptr<grpc::ServerCredentials>& credentials,
      const std::vector<std::string>& archives);

  // Listens, and answers calls on gRPC's threads. Call once, after Start().
  // Errors: FailedPrecondition  another process listens on the address since.
  //         ResourceExhausted   no thread available.
  absl::Status AcceptClients();

  // True once clients can connect.
  bool is_reachable() const { return is_reachable_; }

  // True if there are connections or calls to end.
  bool is_started() const { return server_ != nullptr; }

  // Returns the address with the actual port.
  const std::string& address() const { return address_; }

  // Sets the health of an archive, if archives have one.
  void SetArchiveHealth(const std::string& name, bool is_serving);
  // Sets the health of the server to SERVING.
  void SetServing();
  // Sets all health to NOT_SERVING, for good.
  void EndHealth();

  // Connects through the clients' socket; does not block.
  // Errors: Unavailable  the system refuses.
  absl::StatusOr<std::unique_ptr<OwnConnection>> ConnectToSelf() const {
    return listener_->ConnectToSelf();
  }

  // Accepts no more connections.
  void StopListening() { listener_->Stop(); }

  // Waits for calls in flight until `timeout` has passed, then cancels the
  // rest, and returns when they have ended.
  void EndCalls(absl::Duration timeout);

  // Cancels calls in flight. May run during or after EndCalls().
  void CancelCalls();

  // As ConnectionListener's; 0 before Start().
  uint64_t accept_error_count() const {
    return listener_ == nullptr ? 0 : listener_->accept_error_count();
  }

 private:
  absl::Status CannotListen(absl::string_view why) const;

  const Options options_;
  grpc::Service& service_;
  ConnectionTable& connections_;
  std::string address_;
  // Set before others can call, and kept until the destructor: threads use it
  // without a lock.
  std::unique_ptr<grpc::Server> server_;
  // Set by Start(), and kept until the end.
  std::unique_ptr<ConnectionListener> listener_;
  std::atomic<bool> is_reachable_{false};
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_GRPC_FRONT_H_
