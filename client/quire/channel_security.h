// SPDX-License-Identifier: Apache-2.0
//
// How a client and its server know each other: TLS, certificates, tokens.
#ifndef QUIRE_CLIENT_QUIRE_CHANNEL_SECURITY_H_
#define QUIRE_CLIENT_QUIRE_CHANNEL_SECURITY_H_

#include <string>

namespace quire {

// Files are read once, when a client connects; a program that runs for longer
// than its certificate is valid makes a new client.
struct ChannelSecurity {
  // Encrypts, and checks the server's certificate. Set by any of the next four,
  // too.
  bool tls = false;

  // PEM file of the certificates that may have signed the server's. Empty:
  // those that the system trusts.
  std::string ca_file = {};

  // PEM files of this client's certificate, with those between it and the root
  // after it, and of its key, for a server that asks for one. Both or none.
  std::string certificate_file = {};
  std::string key_file = {};

  // The name that the server's certificate must have. Empty: the host of the
  // address.
  std::string server_name = {};

  // A file with a token, "ID.SECRET", as `quired token new` prints it; may end
  // with a newline. It is sent with each call, and only over TLS, a unix socket
  // or to this machine itself.
  std::string token_file = {};

  bool uses_tls() const {
    return tls || !ca_file.empty() || !certificate_file.empty() ||
           !key_file.empty() || !server_name.empty();
  }
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_CHANNEL_SECURITY_H_
