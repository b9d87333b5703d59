// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_SERVICE_LISTEN_ADDRESS_H_
#define QUIRE_SERVER_SERVICE_LISTEN_ADDRESS_H_

#include <string>

#include "absl/status/status.h"

namespace quire {

// Errors: InvalidArgument     neither HOST:PORT nor unix:PATH.
//         FailedPrecondition  a server answers on that unix socket: gRPC would
//                             take it over silently.
absl::Status CheckListenAddress(const std::string& address);

// `address` with its port replaced by the one it got; unix addresses as they
// are.
std::string WithPort(const std::string& address, int port);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LISTEN_ADDRESS_H_
