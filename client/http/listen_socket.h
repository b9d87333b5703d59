// SPDX-License-Identifier: Apache-2.0
//
// Sockets that the gateway listens on.
#ifndef QUIRE_CLIENT_HTTP_LISTEN_SOCKET_H_
#define QUIRE_CLIENT_HTTP_LISTEN_SOCKET_H_

#include <sys/socket.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "codecs/base/socket_path_claim.h"

namespace quire {

// Listening sockets of one address. Thread-compatible.
class ListenSockets {
 public:
  // Listens on HOST:PORT, all addresses of the host with one port, which is a
  // free one for port 0; or on unix:PATH, which replaces a socket that no
  // process listens on, and holds PATH.lock against other programs. Blocks
  // while the host is looked up. Errors: InvalidArgument     another form of
  // address.
  //         FailedPrecondition  says why it cannot listen.
  static absl::StatusOr<ListenSockets> Open(const std::string& address);

  // Closes the sockets; removes a unix socket, unless another is at its path.
  ~ListenSockets() { Close(); }

  ListenSockets(ListenSockets&& other) noexcept;
  ListenSockets& operator=(ListenSockets&&) = delete;

  void Close();

  // Non-blocking.
  const std::vector<int>& fds() const { return fds_; }

  // With the port that it got.
  const std::string& address() const { return address_; }

  // True if only processes of this machine can connect.
  bool is_local() const { return is_local_; }

 private:
  ListenSockets() = default;

  absl::Status OpenUnix(const std::string& path);
  absl::Status OpenTcp(const std::string& host, const std::string& port);
  // Returns 0 or errno.
  int Listen(const sockaddr* address, socklen_t size);

  std::vector<int> fds_;
  std::string address_;
  // Holds the path of a unix socket.
  SocketPathClaim claim_;
  bool is_local_ = true;
};

// Address of a client as text, without its port; "unix" for unix sockets.
std::string ClientAddress(const sockaddr_storage& address);

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_LISTEN_SOCKET_H_
