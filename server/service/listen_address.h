// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_SERVICE_LISTEN_ADDRESS_H_
#define QUIRE_SERVER_SERVICE_LISTEN_ADDRESS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace quire {

// Errors: InvalidArgument     neither HOST:PORT nor unix:PATH.
//         FailedPrecondition  a server answers on that unix socket: gRPC would
//                             take it over silently.
absl::Status CheckListenAddress(const std::string& address);

// The same for an address of metrics, which is HOST:PORT alone: of a port
// without a host the library that serves them would take all of the machine's
// addresses, strangers' side included.
absl::Status CheckMetricsAddress(const std::string& address);

// The path of "unix:PATH" or "unix://PATH"; unset for other addresses.
std::optional<std::string> UnixSocketPath(absl::string_view address);

// Why a server cannot listen on `address`, HOST:PORT or unix:PATH, as the end
// of a sentence: "the port is in use". For the message after it was
// tried in vain by a library that does not say: it is tried once more, with a
// socket that is closed at once, so that the reason may have changed meanwhile.
// Blocks while a name of a host is looked up.
std::string WhyNotListening(const std::string& address);

// The same of the value of errno that bind() or listen() left.
std::string DescribeListenError(int error_number);

// `address` with its port replaced by the one it got; unix addresses as they
// are.
std::string WithPort(const std::string& address, int port);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LISTEN_ADDRESS_H_
