// SPDX-License-Identifier: GPL-3.0-or-later
//
// Options of a subcommand from elsewhere than the command line.
#ifndef QUIRE_SERVER_COMMANDS_CONFIG_FILE_H_
#define QUIRE_SERVER_COMMANDS_CONFIG_FILE_H_

#include <map>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace quire {

// Gives options that the command line has not set the values of environment
// variables: QUIRED_STALL_TIMEOUT is --stall-timeout. Empty ones count as
// unset; ones that name no option are left alone, since Kubernetes sets such
// ones for a service named quired. Thread-compatible, as the environment is.
// Returns what is wrong, a message each; empty: nothing.
std::vector<std::string> ApplyEnvironment(CLI::App& subcommand);

// What options were given, by their first long name; those that were not are
// absent.
using OptionValues = std::map<std::string, std::vector<std::string>>;

OptionValues ValuesOf(const CLI::App& subcommand);

// Gives them to options that have none. Returns what is wrong, as above.
std::vector<std::string> ApplyValues(const OptionValues& values,
                                     CLI::App& subcommand);

enum class PathChecks {
  // Whoever opens a path says so if it is not there.
  kNone,
  // Files that must exist do, and those that will be written can be made.
  kAll,
};

// Gives options that have no value yet those of a TOML file. A key is the long
// name of an option, or stands in a table that is the beginning of one:
//
//   memory = "4GiB"
//   [tls]
//   cert = "server.pem"      # --tls-cert
//   [archives]
//   docs = "docs.quire"      # --archive docs=docs.quire
//
// Relative paths are relative to the file. Options that are set already keep
// their values, but what the file has for them must be well-formed, too.
// Blocks on I/O. Returns all that is wrong, as "FILE:LINE: MESSAGE": not TOML,
// unknown tables and keys, options that are set twice, empty values, values
// that are not of an option's type, or that its checks refuse.
std::vector<std::string> ApplyConfigFile(const std::string& path,
                                         CLI::App& subcommand,
                                         PathChecks checks);

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_CONFIG_FILE_H_
