// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_SERVICE_LISTEN_ADDRESS_H_
#define QUIRE_SERVER_SERVICE_LISTEN_ADDRESS_H_

#include <netdb.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quire {

// Errors: InvalidArgument     neither HOST:PORT nor unix:PATH.
//         FailedPrecondition  a server answers on that unix socket: gRPC would
//                             take it over silently.
absl::Status CheckListenAddress(const std::string& address);

// The same for the address of metrics, which must be HOST:PORT.
absl::Status CheckMetricsAddress(const std::string& address);

// The path of "unix:PATH" or "unix://PATH"; unset for other addresses.
std::optional<std::string> UnixSocketPath(absl::string_view address);

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// The addresses of HOST:PORT, for bind(). Blocks while the host is looked up.
// Errors: FailedPrecondition  the host is not known.
absl::StatusOr<AddressList> ResolveListenAddress(const std::string& address);

// The reason why a server cannot listen on a unix socket, as the end of a
// sentence.
std::string WhyNotAtPath(const std::string& path);

// The same for a value of errno after bind() or listen(): "the port is in use".
std::string DescribeListenError(int error_number);

// `address` with its port replaced by the one it got; unix addresses as they
// are.
std::string WithPort(const std::string& address, int port);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LISTEN_ADDRESS_H_
