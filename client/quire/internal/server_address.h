// SPDX-License-Identifier: Apache-2.0
//
// Addresses of servers: which of them make sense, and what is wrong with one
// that leads nowhere, in words for people.
#ifndef QUIRE_CLIENT_QUIRE_INTERNAL_SERVER_ADDRESS_H_
#define QUIRE_CLIENT_QUIRE_INTERNAL_SERVER_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace quire {

// Whether a connection may be tried: HOST:PORT, unix:PATH, or another of
// gRPC's schemes. Does not look the host up. Thread-safe.
// Errors: InvalidArgument  it is none; says what one looks like.
absl::Status CheckServerAddress(absl::string_view address);

// What gRPC says of a connection that could not be made, without its inner
// words: the address that was tried and the system's reason. Any other text
// comes back as it is, so that a newer gRPC loses nothing but brevity.
// Thread-safe.
std::string PlainConnectionText(absl::string_view text);

// Whether what gRPC says of a connection that could not be made is that the
// server's certificate was not accepted: trying again will not help.
// Thread-safe.
bool IsCertificateFault(absl::string_view text);

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_SERVER_ADDRESS_H_
