// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/listen_address.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace quire {
namespace {

absl::Status CheckUnixSocket(absl::string_view path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("unix:", path, ": a socket's path has 1 to ",
                     sizeof(address.sun_path) - 1, " bytes"));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return absl::FailedPreconditionError("cannot make a unix socket");
  }
  const bool answered =
      connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  close(fd);
  if (answered) {
    return absl::FailedPreconditionError(
        absl::StrCat("unix:", path, ": a server answers there already"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckListenAddress(const std::string& address) {
  absl::string_view rest = address;
  if (absl::ConsumePrefix(&rest, "unix:")) {
    absl::ConsumePrefix(&rest, "//");
    return CheckUnixSocket(rest);
  }
  const size_t colon = rest.rfind(':');
  uint32_t port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(rest.substr(colon + 1), &port) || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", address, "\" is no address to listen on; write HOST:PORT, as ",
        "127.0.0.1:7420 or [::]:7420, or unix:PATH"));
  }
  return absl::OkStatus();
}

std::string WithPort(const std::string& address, int port) {
  if (absl::string_view(address).substr(0, 5) == "unix:") {
    return address;
  }
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
}

}  // namespace quire
