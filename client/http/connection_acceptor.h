// SPDX-License-Identifier: Apache-2.0
//
// The thread that accepts connections.
#ifndef QUIRE_CLIENT_HTTP_CONNECTION_ACCEPTOR_H_
#define QUIRE_CLIENT_HTTP_CONNECTION_ACCEPTOR_H_

#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"

#include "client/http/listen_socket.h"

namespace quire {

// A connected socket, non-blocking.
struct AcceptedSocket {
  int fd = -1;
  sockaddr_storage address = {};
  socklen_t address_size = 0;
  // Of the admin port.
  bool is_admin = false;
};

// Listens on the address of clients and, if there is one, on that for
// administration. Thread-safe, except Open() and Start().
class ConnectionAcceptor {
 public:
  struct Callbacks {
    // Owns the socket.
    std::function<void(const AcceptedSocket& socket)> on_accept;
    // Called ten times a second, and at once and more often while
    // `is_draining`: clients cannot connect then.
    std::function<void(bool is_draining)> on_sweep;
  };

  ConnectionAcceptor() = default;
  ConnectionAcceptor(const ConnectionAcceptor&) = delete;
  ConnectionAcceptor& operator=(const ConnectionAcceptor&) = delete;
  // As Stop().
  ~ConnectionAcceptor();

  // `admin_address` may be empty. Errors: InvalidArgument  an address; one that
  // other machines can reach, without `accepts_remote`. FailedPrecondition,
  // ResourceExhausted.
  absl::Status Open(const std::string& listen_address,
                    const std::string& admin_address, bool accepts_remote);
  // Starts the thread, on which the callbacks are called. REQUIRES: Open()
  // succeeded. Errors: ResourceExhausted  the system gives no thread.
  absl::Status Start(Callbacks callbacks);

  // Stops listening for clients soon; the admin port stays.
  void Drain();
  // Ends the thread.
  void Stop();

  // With the ports that they got.
  std::string address() const { return listening_[0].address(); }

  std::string admin_address() const {
    return listening_.size() > 1 ? listening_[1].address() : "";
  }

 private:
  void Run();
  void AcceptAll(int fd, bool is_admin);

  std::vector<ListenSockets> listening_;
  int wake_fd_ = -1;
  Callbacks callbacks_;
  std::atomic<bool> is_draining_ = false;
  std::atomic<bool> stops_ = false;
  std::thread thread_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_CONNECTION_ACCEPTOR_H_
