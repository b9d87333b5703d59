// SPDX-License-Identifier: GPL-3.0-or-later
//
// Encoding and output of an archive: options shared by the subcommands that
// write one.
#ifndef QUIRE_SERVER_COMMANDS_ENCODING_OPTIONS_H_
#define QUIRE_SERVER_COMMANDS_ENCODING_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "codecs/base/byte_size.h"
#include "codecs/payload/recipe.h"
#include "server/commands/subcommand_support.h"
#include "server/ingest/build_pipeline.h"
#include "server/ingest/text/build_memory.h"
#include "server/storage/base/cgroup.h"

namespace quire {

struct EncodingOptions {
  std::string codec;
  std::string objective = "balanced";
  uint64_t block_size_bytes = 64 * kKiB;
  uint64_t partition_size_bytes = 0;
  std::string dictionary_size = "auto";
  std::string dictionary_method = "coverage";
  std::string reorder;
  uint64_t build_memory_bytes = kBuildMemoryBytesDefault;
  std::string inflate;
  uint64_t inflate_member_size_bytes = kInflatedBlockSizeMax;
  uint64_t segment_size_bytes = 64 * kGiB;
  uint32_t threads = UsableCores();
  // To detect whether they were given.
  const CLI::Option* codec_option = nullptr;
  const CLI::Option* objective_option = nullptr;
  const CLI::Option* block_size_option = nullptr;
  const CLI::Option* partition_size_option = nullptr;
  const CLI::Option* dictionary_size_option = nullptr;
  const CLI::Option* dictionary_method_option = nullptr;

  // Options that change what all segments of an archive have in common.
  std::vector<const CLI::Option*> kept() const {
    return {codec_option,           objective_option,
            block_size_option,      partition_size_option,
            dictionary_size_option, dictionary_method_option};
  }
};

// `options` must outlive `subcommand`. `has_defaults` is false if --codec or
// --objective must be given, which the caller checks: the help then shows no
// default.
void AddEncodingOptions(CLI::App& subcommand, EncodingOptions& options,
                        bool has_defaults = true);

// Adds the options of an archive's text that a later append may choose again:
// order, inflating, segments and threads. AddEncodingOptions() includes them.
void AddTextOptions(CLI::App& subcommand, EncodingOptions& options);

// Those of EncodingOptions::kept(), for subcommands that never take them:
// hidden, they exist for their message.
struct KeptEncodingOptions {
  std::string value;
  std::vector<const CLI::Option*> options;
};

// `kept` must outlive `subcommand`.
void AddKeptEncodingOptions(CLI::App& subcommand, KeptEncodingOptions& kept);

// Why these options are refused, for subcommands that change ARCHIVE.
inline constexpr char kKeptEncoding[] =
    "the encoding of ARCHIVE stays; quired recompress changes it";

// Errors: InvalidArgument  one was given; for the usage error, which says
//                          `reason`.
absl::Status CheckKeptEncoding(absl::Span<const CLI::Option* const> options,
                               const char* reason);

// Checks the options before anything is read.
// Errors: InvalidArgument  invalid options; for the usage error.
absl::StatusOr<BuildOptions> MakeBuildOptions(EncodingOptions options);

// Returns the directory that will contain `output`: "." for a plain name.
std::string OutputDirectory(const std::string& output);

// Returns the seek cost for BuildOptions of an archive there.
uint64_t SeekCostBytes(const std::string& output_directory);

// Detects failures that would otherwise appear only after reading all inputs.
// `replace_option` is the option that sets `replace`.
// Errors: NotFound, PermissionDenied  the directory; AlreadyExists.
absl::Status CheckOutput(const std::string& output, bool replace,
                         const char* replace_option);

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_ENCODING_OPTIONS_H_
