// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/connection_count.h"

#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

#include "server/service/listen_address.h"

namespace quire {
namespace {

// Large enough for any family that a server listens on. A union, as the system
// fills in what it has.
union SocketAddress {
  sockaddr any;
  sockaddr_in ipv4;
  sockaddr_in6 ipv6;
  sockaddr_un local;
};

// Of a unix socket at this end; empty if it has none.
absl::string_view PathOf(const SocketAddress& address) {
  const char* const path = address.local.sun_path;
  return address.any.sa_family == AF_UNIX
             ? absl::string_view(path,
                                 strnlen(path, sizeof(address.local.sun_path)))
             : "";
}

// At this end; 0 if it has none.
int PortOf(const SocketAddress& address) {
  switch (address.any.sa_family) {
    case AF_INET:
      return ntohs(address.ipv4.sin_port);
    case AF_INET6:
      return ntohs(address.ipv6.sin6_port);
    default:
      return 0;
  }
}

// A socket that listens, or whose other end has gone, has no peer.
bool HasPeer(int fd) {
  SocketAddress peer{};
  socklen_t size = sizeof(peer);
  return getpeername(fd, &peer.any, &size) == 0;
}

}  // namespace

std::optional<uint64_t> CountConnections(const std::string& address) {
  const std::optional<std::string> path = UnixSocketPath(address);
  int port = 0;
  if (!path.has_value() &&
      !absl::SimpleAtoi(
          absl::string_view(address).substr(address.rfind(':') + 1), &port)) {
    return std::nullopt;
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> files(opendir("/proc/self/fd"),
                                                  closedir);
  if (files == nullptr) {
    return std::nullopt;
  }
  uint64_t count = 0;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody else has this directory.
  while (const dirent* const entry = readdir(files.get())) {
    int fd = -1;
    SocketAddress own{};
    socklen_t size = sizeof(own);
    // Others may be closed, or be files, by now: then the system says no.
    if (!absl::SimpleAtoi(entry->d_name, &fd) ||
        getsockname(fd, &own.any, &size) != 0) {
      continue;
    }
    const bool is_ours =
        path.has_value() ? PathOf(own) == *path : PortOf(own) == port;
    if (is_ours && HasPeer(fd)) {
      ++count;
    }
  }
  return count;
}

}  // namespace quire
