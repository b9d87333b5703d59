// SPDX-License-Identifier: Apache-2.0
//
// Checks addresses of servers and explains failed connections.
#ifndef QUIRE_CLIENT_QUIRE_INTERNAL_SERVER_ADDRESS_H_
#define QUIRE_CLIENT_QUIRE_INTERNAL_SERVER_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace quire {

// Checks that an address has the form HOST:PORT, unix:PATH, or another of
// gRPC's schemes. Does not resolve the host. Thread-safe.
// Errors: InvalidArgument  another form; describes the valid ones.
absl::Status CheckServerAddress(absl::string_view address);

// Shortens gRPC's message about a failed connection to the address that was
// tried and the system's reason. Returns any other text unchanged, so that
// messages of newer gRPC versions stay complete. Thread-safe.
std::string PlainConnectionText(absl::string_view text);

// True if gRPC's message about a failed connection means that the server's
// certificate was not accepted: a retry does not help. Thread-safe.
bool IsCertificateFault(absl::string_view text);

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_SERVER_ADDRESS_H_
