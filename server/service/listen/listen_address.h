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
//         FailedPrecondition  a server listens on that unix socket.
absl::Status CheckListenAddress(const std::string& address);

// Checks the address of metrics, which must be HOST:PORT.
absl::Status CheckMetricsAddress(const std::string& address);

// Returns the path of "unix:PATH" or "unix://PATH"; nullopt otherwise.
std::optional<std::string> UnixSocketPath(absl::string_view address);

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// Resolves HOST:PORT to addresses for bind(). Blocks on the look-up.
// Errors: FailedPrecondition  the host is not known.
absl::StatusOr<AddressList> ResolveListenAddress(const std::string& address);

// Returns why a server cannot listen, as the end of a sentence, for an errno of
// bind() or listen(): "the port is in use".
std::string DescribeListenError(int error_number);

// Returns `address` with its port replaced by `port`; unix addresses are
// unchanged.
std::string WithPort(const std::string& address, int port);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LISTEN_ADDRESS_H_
