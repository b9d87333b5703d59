// SPDX-License-Identifier: GPL-3.0-or-later
//
// How an archive is encoded, and where it goes: what the subcommands that write
// one share.
#ifndef QUIRE_SERVER_COMMANDS_ENCODING_OPTIONS_H_
#define QUIRE_SERVER_COMMANDS_ENCODING_OPTIONS_H_

#include <cstdint>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/byte_size.h"
#include "codecs/block_codec.h"
#include "codecs/payload/recipe.h"
#include "server/commands/subcommand_support.h"
#include "server/ingest/build_memory.h"
#include "server/ingest/build_pipeline.h"

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
  bool no_symbol_table = false;
  uint64_t segment_size_bytes = 64 * kGiB;
  uint32_t threads = CoreCount();
  // To know which of them are given.
  const CLI::Option* codec_option = nullptr;
  const CLI::Option* objective_option = nullptr;
  const CLI::Option* block_size_option = nullptr;
  const CLI::Option* partition_size_option = nullptr;
  const CLI::Option* dictionary_size_option = nullptr;
  const CLI::Option* dictionary_method_option = nullptr;
};

// `options` must outlive `subcommand`. `is_codec_required` is for the help: the
// caller checks it.
void AddEncodingOptions(CLI::App& subcommand, EncodingOptions& options,
                        bool is_codec_required = false);

// Checks what can be checked before anything is read.
// Errors: InvalidArgument  options that make no sense; for the usage error.
absl::StatusOr<BuildOptions> MakeBuildOptions(EncodingOptions options);

// Of the archive that is to be at `output`: "." for a plain name.
std::string OutputDirectory(const std::string& output);

// For BuildOptions of an archive there.
uint64_t SeekCostBytes(const std::string& output_directory);

// Failures that would otherwise be found only after reading all inputs.
// `replace_option` is the one that sets `replace`.
// Errors: NotFound, PermissionDenied  the directory; AlreadyExists.
absl::Status CheckOutput(const std::string& output, bool replace,
                         const char* replace_option);

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_ENCODING_OPTIONS_H_
