// SPDX-License-Identifier: GPL-3.0-or-later
//
// A unix socket whose connections have the user of the process at their other
// end for a name.
#ifndef QUIRE_SERVER_SERVICE_UNIX_LISTENER_H_
#define QUIRE_SERVER_SERVICE_UNIX_LISTENER_H_

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "grpcpp/server.h"

#include "server/service/limits/unix_peers.h"

namespace quire {

// gRPC names all connections of a unix socket alike and does not tell who is at
// their other end. So this accepts them, asks the kernel for the peer's user,
// and hands them to gRPC, for which they are then "fd:NUMBER".
class UnixListener {
 public:
  // Binds and listens; a socket that was left behind there is replaced. Nothing
  // is accepted yet. `peers` must outlive the listener.
  // Errors: FailedPrecondition  with the system's reason.
  static absl::StatusOr<std::unique_ptr<UnixListener>> Open(
      const std::string& path, UnixPeers& peers);
  // Accepts no more, and removes the socket's file.
  ~UnixListener();

  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  // Accepts connections for `server`, which must outlive this, on a thread of
  // its own. To be called once.
  // Errors: ResourceExhausted  the system gives no thread.
  absl::Status Serve(grpc::Server& server);

 private:
  UnixListener(std::string path, int listen_fd, int stop_fd, UnixPeers& peers)
      : path_(std::move(path)),
        listen_fd_(listen_fd),
        stop_fd_(stop_fd),
        peers_(peers) {}

  void AcceptUntilStopped(grpc::Server& server);

  const std::string path_;
  const int listen_fd_;
  // An eventfd that is readable once it is time to stop.
  const int stop_fd_;
  UnixPeers& peers_;
  std::thread thread_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_UNIX_LISTENER_H_
