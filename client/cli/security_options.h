// SPDX-License-Identifier: Apache-2.0
//
// Options of a command line for TLS and tokens, which programs that talk to a
// server share.
#ifndef QUIRE_CLIENT_CLI_SECURITY_OPTIONS_H_
#define QUIRE_CLIENT_CLI_SECURITY_OPTIONS_H_

#include "CLI/CLI.hpp"

#include "client/quire/channel_security.h"
#include "deploy/manual/manual.h"

namespace quire {

// Adds --tls, --ca, --cert, --key, --tls-name and --token-file to `app`, which
// fill `security` when it parses: it must live as long.
void AddSecurityOptions(CLI::App& app, ChannelSecurity& security);

// The environment variables of these options, for the man page.
void AddSecurityEnvironment(Manual& manual);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_SECURITY_OPTIONS_H_
