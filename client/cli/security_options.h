// SPDX-License-Identifier: Apache-2.0
//
// Command-line options for TLS and tokens, shared by all programs that connect
// to a server.
#ifndef QUIRE_CLIENT_CLI_SECURITY_OPTIONS_H_
#define QUIRE_CLIENT_CLI_SECURITY_OPTIONS_H_

#include "CLI/CLI.hpp"
#include "absl/status/status.h"

#include "client/quire/channel_security.h"
#include "codecs/base/manual.h"

namespace quire {

// Adds --tls, --ca, --cert, --key, --tls-name, --token-file and
// --allow-readable-secrets to `app`. Parsing sets `security` and
// `allow_readable`, which must outlive `app`.
void AddSecurityOptions(CLI::App& app, ChannelSecurity& security,
                        bool& allow_readable);

// Checks that other users cannot read the files of the private key and of the
// token, unless `allow_readable` is set. Missing files are not an error here.
// Blocks on I/O.
// Errors: PermissionDenied  names the file.
absl::Status CheckSecretFiles(const ChannelSecurity& security,
                              bool allow_readable);

// Adds the environment variables of these options to the man page.
void AddSecurityEnvironment(Manual& manual);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_SECURITY_OPTIONS_H_
