// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_GENERATOR_LOAD_COMMAND_H_
#define QUIRE_LOADTEST_GENERATOR_LOAD_COMMAND_H_

#include <cstdint>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"

#include "client/quire/channel_security.h"
#include "loadtest/requests/load_options.h"

namespace quire {

// The command line of quire-loadtest, with its defaults.
struct LoadCommand {
  LoadOptions load;

  // HOST:PORT or unix:PATH.
  std::string server = "localhost:7420";
  ChannelSecurity security;
  // Accepts secrets that all users can read.
  bool allow_readable_secrets = false;
  uint32_t connection_count = 1;
  // Paths of files with the text of the archive and the places of its
  // documents; empty: not given.
  std::string source;
  std::string index;
  // Prints the report as JSON.
  bool is_json = false;
};

// Declares the options and the manual of `app`, which refers to this object and
// must not be parsed after it is gone. Complete() converts their values.
// Thread-compatible.
class LoadCommandLine {
 public:
  explicit LoadCommandLine(CLI::App& app);

  // Call after app.parse().
  // Errors: InvalidArgument  options that exclude each other, or an invalid
  //                          value; names the option.
  absl::StatusOr<LoadCommand> Complete() const;

 private:
  void DeclareWhat(CLI::App& app);
  void DeclareHow(CLI::App& app);
  // The parts of Complete().
  absl::Status CompleteWhat(LoadOptions& load) const;
  absl::Status CompleteHow(LoadOptions& load) const;
  absl::Status CheckTogether(const LoadOptions& load) const;

  LoadCommand command_;
  std::string mode_ = "random";
  std::string what_ = "ranges";
  std::string range_size_ = "16KiB";
  std::string encoding_ = "identity";
  std::string deadline_ = "30s";
  std::optional<uint64_t> request_count_;
  std::optional<std::string> duration_;
  std::optional<std::string> warmup_;
  std::optional<uint32_t> in_flight_;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_GENERATOR_LOAD_COMMAND_H_
