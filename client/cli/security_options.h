// SPDX-License-Identifier: Apache-2.0
//
// Options of a command line for TLS and tokens, which programs that talk to a
// server share.
#ifndef QUIRE_CLIENT_CLI_SECURITY_OPTIONS_H_
#define QUIRE_CLIENT_CLI_SECURITY_OPTIONS_H_

#include "CLI/CLI.hpp"
#include "absl/status/status.h"

#include "client/quire/channel_security.h"
#include "codecs/base/manual.h"

namespace quire {

// Adds --tls, --ca, --cert, --key, --tls-name, --token-file and
// --allow-readable-secrets to `app`, which fill `security` and `allow_readable`
// when it parses: they must live as long.
void AddSecurityOptions(CLI::App& app, ChannelSecurity& security,
                        bool& allow_readable);

// Checks that other users cannot read the files of the private key and of the
// token, unless `allow_readable`. Files that are not there are left to those
// that read them. Blocks on I/O.
// Errors: PermissionDenied  names the file.
absl::Status CheckSecretFiles(const ChannelSecurity& security,
                              bool allow_readable);

// The environment variables of these options, for the man page.
void AddSecurityEnvironment(Manual& manual);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_SECURITY_OPTIONS_H_
