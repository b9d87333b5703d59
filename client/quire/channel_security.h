// SPDX-License-Identifier: Apache-2.0
//
// Authentication of client and server: TLS, certificates, tokens.
#ifndef QUIRE_CLIENT_QUIRE_CHANNEL_SECURITY_H_
#define QUIRE_CLIENT_QUIRE_CHANNEL_SECURITY_H_

#include <string>

#include "absl/strings/string_view.h"

namespace quire {

// Files are read once, when a client connects; a program that outlives its
// certificate must make a new client.
struct ChannelSecurity {
  // Encrypts, and checks the server's certificate. Implied by any of the next
  // four.
  bool tls = false;

  // PEM file of the authorities for the server's certificate. Empty: those of
  // the system.
  std::string ca_file = {};

  // PEM files of this client's certificate, followed by intermediate ones, and
  // of its key, for a server that requires one. Both or none.
  std::string certificate_file = {};
  std::string key_file = {};

  // Name that the server's certificate must have. Empty: the host of the
  // address.
  std::string server_name = {};

  // A file with a token, "ID.SECRET", as `quired token new` prints it; may end
  // with a newline. The token is sent with each call, only over TLS, a unix
  // socket or to this machine.
  std::string token_file = {};

  bool uses_tls() const {
    return tls || !ca_file.empty() || !certificate_file.empty() ||
           !key_file.empty() || !server_name.empty();
  }
};

// True if a token may be sent to `address` (ClientOptions::address): over TLS,
// to a unix socket or to this machine. Thread-safe.
bool CanCarryToken(const std::string& address, const ChannelSecurity& security);

// True if `header` is "Bearer ", in any case (RFC 9110, section 11.1), and 1 to
// 1,024 printable ASCII characters other than spaces. Thread-safe.
bool IsBearerHeader(absl::string_view header);

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_CHANNEL_SECURITY_H_
