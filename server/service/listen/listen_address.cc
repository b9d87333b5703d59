// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/listen/listen_address.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "codecs/base/socket_path_claim.h"

namespace quire {
namespace {

absl::Status CheckUnixSocket(absl::string_view path) {
  constexpr size_t kSizeMax = sizeof(sockaddr_un::sun_path) - 1;
  if (path.empty() || path.size() > kSizeMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "unix:", path, ": a socket's path has 1 to ", kSizeMax, " bytes"));
  }
  if (IsSocketServed(std::string(path))) {
    return absl::FailedPreconditionError(
        absl::StrCat("unix:", path, ": a server answers there already"));
  }
  return absl::OkStatus();
}

bool IsHostAndPort(absl::string_view address) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  return colon != absl::string_view::npos && colon != 0 &&
         absl::SimpleAtoi(address.substr(colon + 1), &port) && port <= 65535;
}

}  // namespace

absl::Status CheckListenAddress(const std::string& address) {
  if (const std::optional<std::string> path = UnixSocketPath(address)) {
    return CheckUnixSocket(*path);
  }
  if (!IsHostAndPort(address)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", address, "\" is not a listen address; write HOST:PORT, such as ",
        "127.0.0.1:7420 or [::]:7420, or unix:PATH"));
  }
  return absl::OkStatus();
}

absl::Status CheckMetricsAddress(const std::string& address) {
  if (!IsHostAndPort(address)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", address, "\" is not an address for metrics; write ",
                     "HOST:PORT, as 127.0.0.1:7421 or [::]:7421"));
  }
  return absl::OkStatus();
}

std::string DescribeListenError(int error_number) {
  switch (error_number) {
    case EADDRINUSE:
      return "the port is in use";
    case EADDRNOTAVAIL:
      return "this machine has no such address";
    case EACCES:
    case EPERM:
      return "this user may not listen on that port; use 1024 or above";
    default:
      return std::generic_category().message(error_number);
  }
}

std::optional<std::string> UnixSocketPath(absl::string_view address) {
  if (!absl::ConsumePrefix(&address, "unix:")) {
    return std::nullopt;
  }
  absl::ConsumePrefix(&address, "//");
  return std::string(address);
}

absl::StatusOr<AddressList> ResolveListenAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) {
    return absl::FailedPreconditionError("it is not HOST:PORT");
  }
  absl::string_view host = absl::string_view(address).substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) {
    absl::ConsumeSuffix(&host, "]");
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(std::string(host).c_str(), address.substr(colon + 1).c_str(),
                  &hints, &found);
  return error == 0
             ? absl::StatusOr<AddressList>(AddressList(found, &freeaddrinfo))
             : absl::FailedPreconditionError(absl::StrCat(
                   "the host is not known (", gai_strerror(error), ")"));
}

std::string WithPort(const std::string& address, int port) {
  if (UnixSocketPath(address).has_value()) {
    return address;
  }
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
}

}  // namespace quire
