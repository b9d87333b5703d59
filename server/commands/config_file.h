// SPDX-License-Identifier: GPL-3.0-or-later
//
// Options of a subcommand from the environment and from a configuration file.
#ifndef QUIRE_SERVER_COMMANDS_CONFIG_FILE_H_
#define QUIRE_SERVER_COMMANDS_CONFIG_FILE_H_

#include <map>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace quire {

// Sets options that the command line has not set from environment variables:
// QUIRED_STALL_TIMEOUT is --stall-timeout. Empty variables count as unset.
// Thread-compatible, like the environment. Returns an error message for each
// fault.
std::vector<std::string> ApplyEnvironment(CLI::App& subcommand);

// Returns a warning for each variable QUIRED_* that ApplyEnvironment() ignores,
// except those that Kubernetes sets for services. Thread-compatible.
std::vector<std::string> UnknownEnvironment(const CLI::App& subcommand);

// Values of the options that were given, by first long name, except of removed
// ones (AddRemovedOptions()).
using OptionValues = std::map<std::string, std::vector<std::string>>;

OptionValues ValuesOf(const CLI::App& subcommand);

// Sets options that have no value. Returns faults, as above.
std::vector<std::string> ApplyValues(const OptionValues& values,
                                     CLI::App& subcommand);

enum class PathChecks {
  // The code that opens a path reports a missing one.
  kNone,
  // Files that must exist do, and output files can be created.
  kAll,
};

// Sets options without a value from a TOML file. A key is the long name of an
// option, or is in a table named like the beginning of one:
//
//   memory = "4GiB"
//   [tls]
//   cert = "server.pem"      # --tls-cert
//   [archives]
//   docs = "docs.quire"      # --archive docs=docs.quire
//
// Relative paths are relative to the file. Options that are set already keep
// their values, but the file's values for them must be well-formed, too. Blocks
// on I/O. Returns all faults, as "FILE:LINE: MESSAGE": invalid TOML, unknown
// tables and keys, options that are set twice, empty values, values of the
// wrong type, or values that an option's checks reject.
std::vector<std::string> ApplyConfigFile(const std::string& path,
                                         CLI::App& subcommand,
                                         PathChecks checks);

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_CONFIG_FILE_H_
