// SPDX-License-Identifier: GPL-3.0-or-later
//
// The sockets that clients connect to.
#ifndef QUIRE_SERVER_SERVICE_CONNECTION_LISTENER_H_
#define QUIRE_SERVER_SERVICE_CONNECTION_LISTENER_H_

#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/channel.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"

#include "codecs/base/mutex.h"
#include "server/archive/files/file_io.h"
#include "server/service/limits/connection_table.h"

namespace quire {

// The names of the server's own ends of connections to itself. Thread-safe.
class OwnConnections {
 public:
  void Add(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns true if it was there.
  bool Remove(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Mutex mutex_;
  std::set<std::string> names_ ABSL_GUARDED_BY(mutex_);
};

// A connection of a listener's process to the listener. The listener takes it
// without TLS and bounds while this exists: no other process can have its
// address meanwhile.
class OwnConnection {
 public:
  OwnConnection(std::shared_ptr<OwnConnections> all, std::string name,
                std::shared_ptr<grpc::Channel> channel)
      : all_(std::move(all)),
        name_(std::move(name)),
        channel_(std::move(channel)) {}

  ~OwnConnection() { all_->Remove(name_); }

  OwnConnection(const OwnConnection&) = delete;
  OwnConnection& operator=(const OwnConnection&) = delete;

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

 private:
  const std::shared_ptr<OwnConnections> all_;
  const std::string name_;
  const std::shared_ptr<grpc::Channel> channel_;
};

// gRPC's own listener ends for good where no descriptor is left, has no bounds,
// and does not tell users of a unix socket apart. So this accepts connections
// and hands those that ConnectionTable takes to gRPC. Thread-safe.
class ConnectionListener {
 public:
  // Binds HOST:PORT, all addresses that a name of a host has, or unix:PATH,
  // where a socket that was left behind is replaced; listens. Nothing is
  // accepted yet. `connections` must outlive the listener. Blocks while a name
  // is looked up.
  // Errors: FailedPrecondition  with the reason as the end of a sentence.
  static absl::StatusOr<std::unique_ptr<ConnectionListener>> Open(
      const std::string& address, ConnectionTable& connections);
  // As Stop().
  ~ConnectionListener();

  ConnectionListener(const ConnectionListener&) = delete;
  ConnectionListener& operator=(const ConnectionListener&) = delete;

  // Lets the server that `builder` will build take connections with these
  // credentials; those of a unix socket are never encrypted. To be called once,
  // before Serve().
  void Prepare(grpc::ServerBuilder& builder,
               std::shared_ptr<grpc::ServerCredentials> credentials);

  // Accepts connections for `server` on a thread of its own, until Stop(),
  // which must be called before the server ends. To be called once.
  // Errors: ResourceExhausted  the system gives no thread.
  absl::Status Serve(grpc::Server& server);

  // Accepts no more, and removes the file of a unix socket.
  void Stop() ABSL_LOCKS_EXCLUDED(stop_mutex_);

  // Connects to this listener as a client on this machine would; does not
  // block. Errors: Unavailable  the system refuses.
  absl::StatusOr<std::unique_ptr<OwnConnection>> ConnectToSelf() const;

  // The port that it got; 0 of a unix socket.
  int port() const { return port_; }

  // How often the system gave no connection, for want of descriptors or memory
  // as a rule. It was asked again each time.
  uint64_t accept_error_count() const { return accept_error_count_.load(); }

 private:
  ConnectionListener(std::string unix_path, ConnectionTable& connections)
      : unix_path_(std::move(unix_path)), connections_(connections) {}

  absl::Status BindUnix();
  absl::Status BindHost(const std::string& address);
  // errno; 0 if it listens.
  int BindOne(const sockaddr* address, socklen_t size);
  void AcceptUntilStopped(grpc::Server& server);
  // Returns false if there was an error other than that none waits.
  bool AcceptOne(int listening, grpc::Server& server);
  // Returns false if the caller must close `fd`.
  bool HandOver(int fd, int listening, grpc::Server& server);

  // Empty if it is none.
  const std::string unix_path_;
  ConnectionTable& connections_;
  const std::shared_ptr<OwnConnections> own_ =
      std::make_shared<OwnConnections>();
  std::vector<UniqueFd> listening_;
  // An eventfd that is readable once it is time to stop.
  UniqueFd stop_;
  // Where a client on this machine connects to.
  sockaddr_storage self_{};
  socklen_t self_size_ = 0;
  int port_ = 0;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::atomic<uint64_t> accept_error_count_ = 0;
  Mutex stop_mutex_;
  std::thread thread_ ABSL_GUARDED_BY(stop_mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CONNECTION_LISTENER_H_
