// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/listen/connection_listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel_posix.h"
#include "grpcpp/server_posix.h"

#include "codecs/base/status_macros.h"
#include "server/service/limits/client_name.h"
#include "server/service/listen/listen_address.h"

namespace quire {
namespace {

// Pause after running out of descriptors or memory.
constexpr int kPauseMs = 100;
// A connection ends if the client does not acknowledge data for this long.
constexpr unsigned kUserTimeoutMs = 20 * 1000;
// Interval of checks for connections that were silent for too long.
constexpr absl::Duration kSilenceLookMax = absl::Minutes(1);

std::string ErrnoMessage(int error_number) {
  return std::generic_category().message(error_number);
}

// Returns gRPC's name for the peer, without the zone of a link-local address.
std::string PeerName(const sockaddr_storage& address, socklen_t size) {
  if (address.ss_family == AF_UNIX) {
    return absl::StrCat("unix:", absl::BytesToHexString(
                                     {reinterpret_cast<const char*>(&address),
                                      static_cast<size_t>(size)}));
  }
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &ipv4.sin_addr, text, sizeof(text));
    return absl::StrCat("ipv4:", text, ":", ntohs(ipv4.sin_port));
  }
  const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_V4MAPPED(&ipv6.sin6_addr)) {
    inet_ntop(AF_INET, &ipv6.sin6_addr.s6_addr[12], text, sizeof(text));
    return absl::StrCat("ipv4:", text, ":", ntohs(ipv6.sin6_port));
  }
  inet_ntop(AF_INET6, &ipv6.sin6_addr, text, sizeof(text));
  return absl::StrCat("ipv6:%5B", text, "%5D:", ntohs(ipv6.sin6_port));
}

int PortOf(const sockaddr_storage& address) {
  return address.ss_family == AF_INET
             ? ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port)
         : address.ss_family == AF_INET6
             ? ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port)
             : 0;
}

void SetPort(sockaddr* address, int port) {
  const auto number = htons(static_cast<uint16_t>(port));
  if (address->sa_family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = number;
  } else if (address->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = number;
  }
}

// True for "0.0.0.0" and "::".
bool IsWildcard(const sockaddr* address) {
  return address->sa_family == AF_INET
             ? reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr ==
                   htonl(INADDR_ANY)
             : address->sa_family == AF_INET6 &&
                   IN6_IS_ADDR_UNSPECIFIED(
                       &reinterpret_cast<const sockaddr_in6*>(address)
                            ->sin6_addr);
}

sockaddr_in6 AnyAddress6(int port) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_any;
  address.sin6_port = htons(static_cast<uint16_t>(port));
  return address;
}

sockaddr_in AnyAddress4(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

template <typename Address>
const sockaddr* Generic(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

}  // namespace

void OwnConnections::Add(const std::string& name) {
  MutexLock lock(&mutex_);
  names_.insert(name);
}

bool OwnConnections::Remove(const std::string& name) {
  MutexLock lock(&mutex_);
  return names_.erase(name) > 0;
}

absl::StatusOr<std::unique_ptr<ConnectionListener>> ConnectionListener::Open(
    const std::string& address, ConnectionTable& connections) {
  const std::optional<std::string> path = UnixSocketPath(address);
  std::unique_ptr<ConnectionListener> listener(
      new ConnectionListener(path.value_or(""), connections));
  listener->stop_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!listener->stop_.is_open()) {
    return absl::FailedPreconditionError(ErrnoMessage(errno));
  }
  if (path.has_value()) {
    QUIRE_RETURN_IF_ERROR(listener->BindUnix());
    return listener;
  }
  QUIRE_RETURN_IF_ERROR(listener->BindHost(address));
  return listener;
}

absl::Status ConnectionListener::BindUnix() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (unix_path_.size() >= sizeof(address.sun_path)) {
    return absl::FailedPreconditionError(
        absl::StrCat("a socket's path has 1 to ", sizeof(address.sun_path) - 1,
                     " bytes, got ", unix_path_.size()));
  }
  std::memcpy(address.sun_path, unix_path_.data(), unix_path_.size());
  QUIRE_ASSIGN_OR_RETURN(claim_, SocketPathClaim::Take(unix_path_));
  const int error = BindOne(Generic(address), sizeof(address));
  if (error != 0) {
    return absl::FailedPreconditionError(ErrnoMessage(error));
  }
  claim_.NoteBound();
  return absl::OkStatus();
}

absl::Status ConnectionListener::BindHost(const std::string& address) {
  QUIRE_ASSIGN_OR_RETURN(const AddressList places,
                         ResolveListenAddress(address));
  int first_error = 0;
  for (addrinfo* place = places.get(); place != nullptr;
       place = place->ai_next) {
    int error = 0;
    if (IsWildcard(place->ai_addr)) {
      sockaddr_storage wanted{};
      std::memcpy(&wanted, place->ai_addr, place->ai_addrlen);
      // All addresses, of both kinds if the machine has both.
      const sockaddr_in6 any6 = AnyAddress6(PortOf(wanted));
      const sockaddr_in any4 = AnyAddress4(PortOf(wanted));
      error = BindOne(Generic(any6), sizeof(any6));
      if (error == EAFNOSUPPORT || error == EADDRNOTAVAIL) {
        error = BindOne(Generic(any4), sizeof(any4));
      }
    } else {
      if (port_ != 0) {
        SetPort(place->ai_addr, port_);
      }
      error = BindOne(place->ai_addr, place->ai_addrlen);
    }
    if (first_error == 0) {
      first_error = error;
    }
  }
  return sockets_.empty()
             ? absl::FailedPreconditionError(DescribeListenError(first_error))
             : absl::OkStatus();
}

int ConnectionListener::BindOne(const sockaddr* address, socklen_t size) {
  UniqueFd fd(socket(address->sa_family,
                     SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_open()) {
    return errno;
  }
  // Accepted connections inherit these.
  const int on = 1;
  const int off = 0;
  if (address->sa_family != AF_UNIX) {
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMs,
               sizeof(kUserTimeoutMs));
  }
  if (address->sa_family == AF_INET6) {
    const bool is_any = IsWildcard(address);
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, is_any ? &off : &on,
               sizeof(on));
  }
  if (bind(fd.get(), address, size) != 0) {
    return errno;
  }
  if (sockets_.empty()) {
    self_size_ = sizeof(self_);
    getsockname(fd.get(), reinterpret_cast<sockaddr*>(&self_), &self_size_);
    port_ = PortOf(self_);
    if (IsWildcard(Generic(self_))) {
      if (self_.ss_family == AF_INET) {
        reinterpret_cast<sockaddr_in&>(self_).sin_addr.s_addr =
            htonl(INADDR_LOOPBACK);
      } else {
        reinterpret_cast<sockaddr_in6&>(self_).sin6_addr = in6addr_loopback;
      }
    }
  }
  sockets_.push_back(std::move(fd));
  return 0;
}

ConnectionListener::~ConnectionListener() {
  Stop();
}

void ConnectionListener::Prepare(
    grpc::ServerBuilder& builder,
    std::shared_ptr<grpc::ServerCredentials> credentials) {
  if (unix_path_.empty()) {
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        std::move(credentials));
  }
}

absl::Status ConnectionListener::Serve(grpc::Server& server) {
  MutexLock lock(&stop_mutex_);
  for (const UniqueFd& fd : sockets_) {
    if (listen(fd.get(), SOMAXCONN) != 0) {
      return absl::FailedPreconditionError(DescribeListenError(errno));
    }
  }
  try {
    thread_ = std::thread([this, &server] { AcceptUntilStopped(server); });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot start a thread to accept connections with: ", error.what()));
  }
  return absl::OkStatus();
}

void ConnectionListener::Stop() {
  MutexLock lock(&stop_mutex_);
  if (sockets_.empty()) {
    return;
  }
  const uint64_t one = 1;
  // An eventfd at 0 takes eight bytes at once.
  [[maybe_unused]] const ssize_t written =
      write(stop_.get(), &one, sizeof(one));
  if (thread_.joinable()) {
    thread_.join();
  }
  sockets_.clear();
  claim_.Release();
}

void ConnectionListener::AcceptUntilStopped(grpc::Server& server) {
  pthread_setname_np(pthread_self(), "quire-accept");
  std::vector<pollfd> waiting = {{stop_.get(), POLLIN, 0}};
  for (const UniqueFd& fd : sockets_) {
    waiting.push_back({fd.get(), POLLIN, 0});
  }
  while (true) {
    const absl::Duration wait =
        std::min(connections_.EndSilent(), kSilenceLookMax);
    poll(waiting.data(), waiting.size(),
         static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1);
    if (waiting[0].revents != 0) {
      return;
    }
    bool is_good = true;
    for (size_t i = 1; i < waiting.size(); ++i) {
      if (waiting[i].revents != 0) {
        is_good = AcceptOne(waiting[i].fd, server) && is_good;
      }
    }
    if (!is_good) {
      accept_error_count_.fetch_add(1);
      poll(waiting.data(), 1, kPauseMs);
    }
  }
}

bool ConnectionListener::AcceptOne(int listening, grpc::Server& server) {
  const int fd =
      accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    // The client may have disconnected already.
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ||
           errno == ECONNABORTED || errno == EPROTO;
  }
  if (!HandOver(fd, listening, server)) {
    close(fd);
  }
  return true;
}

bool ConnectionListener::HandOver(int fd, int listening, grpc::Server& server) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return false;
  }
  std::string peer = PeerName(address, size);
  if (own_->Remove(peer)) {
    grpc::AddInsecureChannelFromFd(&server, fd);
    return true;
  }
  std::string client = ClientShareOf(ClientNameOf(peer));
  if (!unix_path_.empty()) {
    ucred user{};
    socklen_t user_size = sizeof(user);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &user_size) != 0) {
      return false;
    }
    peer = absl::StrCat("fd:", fd);
    client = absl::StrCat("unix:user=", user.uid);
  }
  if (connections_.Add(fd, std::move(peer), std::move(client)) !=
      ConnectionVerdict::kTaken) {
    return false;
  }
  if (!unix_path_.empty()) {
    grpc::AddInsecureChannelFromFd(&server, fd);
    return true;
  }
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters
      connection;
  connection.listener_fd = listening;
  connection.fd = fd;
  acceptor_->HandleNewConnection(&connection);
  return true;
}

absl::StatusOr<std::unique_ptr<OwnConnection>>
ConnectionListener::ConnectToSelf() const {
  const auto fail = [] {
    return absl::UnavailableError(absl::StrCat(
        "the server cannot connect to itself: ", ErrnoMessage(errno)));
  };
  UniqueFd fd(
      socket(self_.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // A name unique to this connection: a free port, or one that the system
  // chooses for a unix socket.
  sockaddr_storage name = self_;
  SetPort(reinterpret_cast<sockaddr*>(&name), 0);
  socklen_t size = name.ss_family == AF_UNIX ? sizeof(sa_family_t) : self_size_;
  if (!fd.is_open() || bind(fd.get(), Generic(name), size) != 0) {
    return fail();
  }
  size = sizeof(name);
  name = {};
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&name), &size) != 0) {
    return fail();
  }
  const std::string peer = PeerName(name, size);
  own_->Add(peer);
  if (connect(fd.get(), Generic(self_), self_size_) != 0 &&
      errno != EINPROGRESS) {
    const absl::Status status = fail();
    own_->Remove(peer);
    return status;
  }
  const int own_end = fcntl(fd.get(), F_DUPFD_CLOEXEC, 0);
  if (own_end < 0) {
    const absl::Status status = fail();
    own_->Remove(peer);
    return status;
  }
  return std::make_unique<OwnConnection>(
      own_, peer, grpc::CreateInsecureChannelFromFd("self", own_end));
}

}  // namespace quire
