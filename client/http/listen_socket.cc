// SPDX-License-Identifier: Apache-2.0
#include "client/http/listen_socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr int kBacklog = 1024;

absl::Status CannotListen(absl::string_view address, int error) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot listen on ", PrintableText(address), ": ",
                   std::generic_category().message(error)));
}

bool IsLoopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
  }
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(
             &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

// Port in the network's byte order; it lies at the same offset in both kinds.
in_port_t& PortOf(sockaddr* address) {
  static_assert(offsetof(sockaddr_in, sin_port) ==
                offsetof(sockaddr_in6, sin6_port));
  return reinterpret_cast<sockaddr_in*>(address)->sin_port;
}

in_port_t BoundPort(int fd) {
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size);
  return PortOf(reinterpret_cast<sockaddr*>(&bound));
}

}  // namespace

absl::StatusOr<ListenSockets> ListenSockets::Open(const std::string& address) {
  ListenSockets sockets;
  sockets.address_ = address;
  absl::string_view rest(address.data(), address.size());
  if (absl::ConsumePrefix(&rest, "unix:")) {
    absl::ConsumePrefix(&rest, "//");
    QUIRE_RETURN_IF_ERROR(sockets.OpenUnix(std::string(rest)));
    return sockets;
  }
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(rest.substr(colon + 1), &port) || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("an address to listen on must be HOST:PORT or unix:PATH, "
                     "got ",
                     QuotedText(rest)));
  }
  absl::string_view host = rest.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) {
    absl::ConsumeSuffix(&host, "]");
  }
  QUIRE_RETURN_IF_ERROR(
      sockets.OpenTcp(std::string(host), address.substr(colon + 1)));
  return sockets;
}

ListenSockets::ListenSockets(ListenSockets&& other) noexcept
    : fds_(std::exchange(other.fds_, {})),
      address_(std::move(other.address_)),
      claim_(std::move(other.claim_)),
      is_local_(other.is_local_) {}

void ListenSockets::Close() {
  for (const int fd : fds_) {
    close(fd);
  }
  fds_.clear();
  claim_.Release();
}

absl::Status ListenSockets::OpenUnix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the path of a unix socket must have 1 to ",
        sizeof(address.sun_path) - 1, " bytes, got ", path.size()));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  absl::StatusOr<SocketPathClaim> claim = SocketPathClaim::Take(path);
  if (!claim.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot listen on ", PrintableText(address_), ": ",
                     claim.status().message()));
  }
  claim_ = *std::move(claim);
  const int error =
      Listen(reinterpret_cast<sockaddr*>(&address), sizeof(address));
  if (error != 0) {
    return CannotListen({address_.data(), address_.size()}, error);
  }
  claim_.NoteBound();
  return absl::OkStatus();
}

absl::Status ListenSockets::OpenTcp(const std::string& host,
                                    const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int fault = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (fault != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot listen on ", QuotedText({address_.data(), address_.size()}),
        ": the host is not known (", gai_strerror(fault), ")"));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found,
                                                                &freeaddrinfo);
  int error = 0;
  in_port_t bound_port = 0;
  for (addrinfo* each = list.get(); each != nullptr; each = each->ai_next) {
    if (bound_port != 0) {
      PortOf(each->ai_addr) = bound_port;
    }
    const int refusal = Listen(each->ai_addr, each->ai_addrlen);
    if (refusal == 0) {
      bound_port = BoundPort(fds_.back());
      is_local_ = is_local_ && IsLoopback(each->ai_addr);
    }
    error = error == 0 ? refusal : error;
  }
  if (fds_.empty()) {
    return CannotListen({address_.data(), address_.size()}, error);
  }
  address_ = absl::StrCat(address_.substr(0, address_.rfind(':')), ":",
                          ntohs(bound_port));
  return absl::OkStatus();
}

int ListenSockets::Listen(const sockaddr* address, socklen_t size) {
  const int fd =
      socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    return errno;
  }
  const int on = 1;
  if (address->sa_family != AF_UNIX) {
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  }
  if (address->sa_family == AF_INET6) {
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  }
  if (bind(fd, address, size) != 0 || listen(fd, kBacklog) != 0) {
    const int error = errno;
    close(fd);
    return error;
  }
  fds_.push_back(fd);
  return 0;
}

std::string ClientAddress(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address.ss_family == AF_INET) {
    bytes = &reinterpret_cast<const sockaddr_in*>(&address)->sin_addr;
  } else if (address.ss_family == AF_INET6) {
    bytes = &reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr;
  } else {
    return "unix";
  }
  inet_ntop(address.ss_family, bytes, text.data(), text.size());
  return text.data();
}

}  // namespace quire
