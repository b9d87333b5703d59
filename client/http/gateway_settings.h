// SPDX-License-Identifier: Apache-2.0
//
// The command line of `quire-http`.
#ifndef QUIRE_CLIENT_HTTP_GATEWAY_SETTINGS_H_
#define QUIRE_CLIENT_HTTP_GATEWAY_SETTINGS_H_

#include <cstddef>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "client/http/gateway.h"
#include "client/http/http_daemon.h"
#include "client/quire/client.h"

namespace quire {

// The command line as given.
struct GatewaySettings {
  std::string server = "127.0.0.1:7420";
  ChannelSecurity security;
  bool allow_readable_secrets = false;
  std::string call_timeout = "30s";
  DaemonOptions daemon;
  std::string memory = "512MiB";
  std::string header_size = "16KiB";
  std::string header_timeout = "10s";
  std::string idle_timeout = "30s";
  std::string drain_timeout = "30s";
  // Empty: none.
  std::string files_directory;
  // Empty: TMPDIR, otherwise /tmp.
  std::string spool_directory;
  std::string spool_size = "1GiB";
  // Empty: none.
  std::string access_log;
};

struct GatewayOptions {
  ClientOptions client = {};
  DaemonOptions daemon = {};
  GatewayStorage storage = {};
  // Memory for connections and requests.
  size_t budget_size_bytes = 0;
  absl::Duration drain_timeout = {};
};

// Fills `app`, which writes into `settings` when it parses. Both must live as
// long as the app is used.
void DefineGatewayOptions(CLI::App& app, GatewaySettings& settings);

// Errors: InvalidArgument  names the option that is wrong.
absl::StatusOr<GatewayOptions> MakeGatewayOptions(
    const GatewaySettings& settings);

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_GATEWAY_SETTINGS_H_
