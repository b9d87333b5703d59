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
#include "codecs/base/socket_path_claim.h"
#include "server/archive/files/file_io.h"
#include "server/service/limits/connection_table.h"

namespace quire {

// Names of the server's ends of connections to itself. Thread-safe.
class OwnConnections {
 public:
  void Add(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns true if it was there.
  bool Remove(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Mutex mutex_;
  std::set<std::string> names_ ABSL_GUARDED_BY(mutex_);
};

// A connection of a listener's process to the listener, which accepts it
// without TLS and limits while this object exists: no other process can have
// its address meanwhile.
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

// Accepts connections and hands those that ConnectionTable takes to gRPC.
// gRPC's own listener stops for good when descriptors run out, has no limits,
// and does not distinguish the users of a unix socket. Thread-safe.
class ConnectionListener {
 public:
  // Binds; clients are refused until Serve(). HOST:PORT binds all addresses of
  // the host; unix:PATH replaces a stale socket, and holds PATH.lock against
  // other servers. `connections` must outlive the listener. Blocks while a name
  // is looked up.
  // Errors: FailedPrecondition  with the reason as the end of a sentence.
  static absl::StatusOr<std::unique_ptr<ConnectionListener>> Open(
      const std::string& address, ConnectionTable& connections);
  // Calls Stop().
  ~ConnectionListener();

  ConnectionListener(const ConnectionListener&) = delete;
  ConnectionListener& operator=(const ConnectionListener&) = delete;

  // Lets the server that `builder` will build take connections with these
  // credentials. Connections of a unix socket are never encrypted. Call once,
  // before Serve().
  void Prepare(grpc::ServerBuilder& builder,
               std::shared_ptr<grpc::ServerCredentials> credentials);

  // Listens, and accepts connections for `server` on its own thread until
  // Stop(), which must be called before the server ends. Call once.
  // Errors: FailedPrecondition  as Open(): another process listens there since.
  //         ResourceExhausted   no thread available.
  absl::Status Serve(grpc::Server& server);

  // Stops accepting, and removes the file of a unix socket, if it is this
  // one's.
  void Stop() ABSL_LOCKS_EXCLUDED(stop_mutex_);

  // Connects to this listener like a client on this machine; does not block.
  // Errors: Unavailable  the system refuses.
  absl::StatusOr<std::unique_ptr<OwnConnection>> ConnectToSelf() const;

  // Returns the actual port; 0 for a unix socket.
  int port() const { return port_; }

  // Returns the number of failed accept() calls, usually for lack of
  // descriptors or memory. Each was retried.
  uint64_t accept_error_count() const { return accept_error_count_.load(); }

 private:
  ConnectionListener(std::string unix_path, ConnectionTable& connections)
      : unix_path_(std::move(unix_path)), connections_(connections) {}

  absl::Status BindUnix();
  absl::Status BindHost(const std::string& address);
  // Returns errno; 0 if it is bound.
  int BindOne(const sockaddr* address, socklen_t size);
  void AcceptUntilStopped(grpc::Server& server);
  // Returns false on an error other than that no connection waits.
  bool AcceptOne(int listening, grpc::Server& server);
  // Returns false if the caller must close `fd`.
  bool HandOver(int fd, int listening, grpc::Server& server);

  // Empty if it is not a unix socket.
  const std::string unix_path_;
  // Of that path.
  SocketPathClaim claim_;
  ConnectionTable& connections_;
  const std::shared_ptr<OwnConnections> own_ =
      std::make_shared<OwnConnections>();
  std::vector<UniqueFd> sockets_;
  // An eventfd that is readable once the thread should stop.
  UniqueFd stop_;
  // Address for clients on this machine.
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
