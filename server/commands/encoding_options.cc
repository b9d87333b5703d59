// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/encoding_options.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "codecs/auto/member_choice.h"
#include "codecs/base/manual.h"
#include "codecs/base/number_range.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/payload/recipe.h"
#include "codecs/rlz/dictionary_builder.h"
#include "server/archive/format/archive_format.h"
#include "server/commands/subcommand_support.h"
#include "server/ingest/build_choice.h"
#include "server/ingest/text/text_migration.h"
#include "server/storage/device/drive_kind.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

bool WasGiven(const CLI::Option* option) {
  return option != nullptr && option->count() > 0;
}

absl::StatusOr<DictionaryMethod> ParseDictionaryMethod(
    const std::string& name) {
  if (name == "coverage") {
    return DictionaryMethod::kCoverage;
  }
  if (name == "uniform") {
    return DictionaryMethod::kUniform;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--dictionary-method must be coverage or uniform, got ",
                   QuotedText(name)));
}

// Returns nullopt for auto.
absl::StatusOr<std::optional<uint64_t>> ParseDictionarySize(
    const std::string& text) {
  if (text == "auto") {
    return std::nullopt;
  }
  const absl::StatusOr<uint64_t> size = ParseByteSize(text);
  if (!size.ok() || *size == 0 || *size > kDictionarySizeBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--dictionary-size must be auto, or at least 1 byte and less than "
        "2GiB, got ",
        QuotedText(text)));
  }
  return *size;
}

absl::StatusOr<bool> ParseInflate(const std::string& name) {
  if (name == "off" || name == "auto") {
    return name == "auto";
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--inflate must be off or auto, got ", QuotedText(name)));
}

absl::StatusOr<ReorderMode> ParseReorderMode(const std::string& name) {
  if (name == "off") {
    return ReorderMode::kOff;
  }
  if (name == "auto") {
    return ReorderMode::kAuto;
  }
  if (name == "dedup") {
    return ReorderMode::kDuplicates;
  }
  if (name == "full") {
    return ReorderMode::kFull;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--reorder must be off, auto, dedup or full, got ", QuotedText(name)));
}

// An option for choosing the dictionary requires one.
absl::Status CheckUsesDictionary(const CodecSpec& codec, const char* option) {
  const CodecInfo& info = *FindCodec(codec.id);
  if (!info.needs_dictionary) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " needs a codec with a dictionary, and codec ",
                     info.name, " has none; leave the option out"));
  }
  return absl::OkStatus();
}

absl::StatusOr<AutoObjective> CheckObjective(const std::string& name) {
  const std::optional<AutoObjective> objective = ParseObjective(name);
  if (!objective.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--objective must be speed, balanced or archive, got ",
                     QuotedText(name)));
  }
  return *objective;
}

// Returns the given codec, at the level of the objective if it has none; if no
// codec is given, that of the objective.
absl::StatusOr<CodecSpec> ChooseCodec(const std::string& codec,
                                      AutoObjective objective) {
  if (codec.empty()) {
    return SettingsOf(objective).codec;
  }
  QUIRE_ASSIGN_OR_RETURN(CodecSpec spec, ParseCodecSpec(codec));
  if (absl::StrContains(codec, ':')) {
    return spec;
  }
  const CodecInfo& info = *FindCodec(spec.id);
  if (info.id == CodecId::kAuto) {
    spec.level = static_cast<int>(objective);
  } else if (objective == AutoObjective::kSpeed) {
    spec.level = info.level_min;
  } else if (objective == AutoObjective::kArchive) {
    spec.level = info.level_max;
  }
  return spec;
}

// Sets the partition size of `codec`.
absl::Status CheckPartitionSize(const EncodingOptions& options,
                                CodecSpec& codec) {
  const CodecInfo& info = *FindCodec(codec.id);
  const uint64_t size = options.partition_size_bytes;
  if (size == 0) {
    return absl::OkStatus();
  }
  if (!info.takes_partitions) {
    return absl::InvalidArgumentError(
        absl::StrCat("--partition-size does not apply to codec ", info.name,
                     "; leave the option out"));
  }
  if (!IsPartitionSize(size) || size > options.block_size_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--partition-size must be a power of two from 4KiB to 1MiB, and at ",
        "most --block-size, which is ",
        FormatByteSizeExact(options.block_size_bytes), "; got ",
        FormatByteSizeExact(size)));
  }
  codec.partition_size_bytes = static_cast<uint32_t>(size);
  FitPartitions(options.block_size_bytes, codec);
  return absl::OkStatus();
}

// Checks everything possible before reading. The message is for the usage
// error.
absl::StatusOr<CodecSpec> CheckOptions(const EncodingOptions& options,
                                       AutoObjective objective) {
  QUIRE_ASSIGN_OR_RETURN(CodecSpec codec,
                         ChooseCodec(options.codec, objective));
  const uint64_t block_size = options.block_size_bytes;
  if (block_size < 4 * kKiB || block_size > kBlockSizeBytesMax ||
      (block_size & (block_size - 1)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--block-size must be a power of two from 4KiB to 1MiB, like 16KiB or ",
        "64KiB, got ", FormatByteSizeExact(block_size)));
  }
  QUIRE_RETURN_IF_ERROR(CheckPartitionSize(options, codec));
  if (WasGiven(options.dictionary_size_option)) {
    QUIRE_RETURN_IF_ERROR(CheckUsesDictionary(codec, "--dictionary-size"));
  }
  if (WasGiven(options.dictionary_method_option)) {
    QUIRE_RETURN_IF_ERROR(CheckUsesDictionary(codec, "--dictionary-method"));
  }
  QUIRE_RETURN_IF_ERROR(
      ParseDictionaryMethod(options.dictionary_method).status());
  QUIRE_RETURN_IF_ERROR(ParseReorderMode(options.reorder).status());
  QUIRE_RETURN_IF_ERROR(ParseInflate(options.inflate).status());
  if (options.inflate_member_size_bytes == 0 ||
      options.inflate_member_size_bytes > kInflatedLargeSizeMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("--inflate-member-size must be 1 byte to ",
                     FormatByteSizeExact(kInflatedLargeSizeMax), ", got ",
                     FormatByteSizeExact(options.inflate_member_size_bytes)));
  }
  QUIRE_RETURN_IF_ERROR(ParseDictionarySize(options.dictionary_size).status());
  if (options.build_memory_bytes == 0) {
    return absl::InvalidArgumentError(
        "--build-memory must be at least 1 byte, got 0");
  }
  if (options.segment_size_bytes == 0) {
    return absl::InvalidArgumentError(
        "--segment-size must be at least 1 byte, got 0");
  }
  return codec;
}

std::vector<std::string> CodecNames() {
  std::vector<std::string> names;
  for (const CodecInfo& codec : AllCodecs()) {
    names.emplace_back(codec.name);
  }
  return names;
}

// Returns the help of `subcommand` with a line for each codec.
std::string HelpWithAllCodecs(const CLI::App& subcommand) {
  std::string text = absl::StrCat(subcommand.help(), "\nCodecs:\n");
  for (const CodecInfo& codec : AllCodecs()) {
    absl::StrAppendFormat(&text, "  %-12s %s\n", codec.name, codec.summary);
  }
  return text;
}

}  // namespace

void AddEncodingOptions(CLI::App& subcommand, EncodingOptions& options,
                        bool has_defaults) {
  CLI::Option* const objective =
      subcommand
          .add_option("--objective", options.objective,
                      "Purpose of the archive: speed, balanced, or archive for "
                      "the smallest")
          ->type_name("NAME");
  if (has_defaults) {
    objective->capture_default_str();
  }
  options.objective_option = objective;
  OfferValues(*objective, {"speed", "balanced", "archive"});
  CLI::Option* const codec = subcommand.add_option(
      "--codec", options.codec,
      "Block codec, see --help-all; level fast, default, max or a number");
  options.codec_option = codec;
  codec->type_name("NAME[:LEVEL]");
  OfferValues(*codec, CodecNames());
  // Runs before missing options are reported, like --help.
  subcommand.add_flag_callback(
      "--help-all",
      [&subcommand] {
        std::cout << HelpWithAllCodecs(subcommand);
        throw CLI::Success();
      },
      "Print this help and all codecs, and exit");
  options.block_size_option =
      AddByteSizeOption(subcommand, "--block-size", options.block_size_bytes,
                        "Text per block, a power of two from 4KiB to 1MiB");
  options.partition_size_option = AddByteSizeOption(
      subcommand, "--partition-size", options.partition_size_bytes,
      "Text per separately decoded part of a block; 0: blocks are whole");
  options.dictionary_size_option =
      subcommand
          .add_option("--dictionary-size", options.dictionary_size,
                      "Limit on the shared dictionary, which serving keeps in "
                      "memory")
          ->type_name("SIZE")
          ->capture_default_str();
  options.dictionary_method_option =
      subcommand
          .add_option("--dictionary-method", options.dictionary_method,
                      "Text of the dictionary: coverage, the most repeated; or "
                      "uniform, samples")
          ->type_name("METHOD")
          ->capture_default_str();
  AddTextOptions(subcommand, options);
  AddRemovedOptions(subcommand, [](const std::string& warning) {
    std::cerr << "warning: " << warning << "\n";
  });
}

void AddTextOptions(CLI::App& subcommand, EncodingOptions& options) {
  CLI::Option* const reorder =
      subcommand
          .add_option(
              "--reorder", options.reorder,
              "Order of the stored text: off, dedup, full (similar text "
              "together) or auto")
          ->type_name("MODE");
  OfferValues(*reorder, {"off", "auto", "dedup", "full"});
  AddByteSizeOption(subcommand, "--build-memory", options.build_memory_bytes,
                    "Memory limit for the tables of --reorder");
  CLI::Option* const inflate =
      subcommand
          .add_option(
              "--inflate", options.inflate,
              "Storage of zlib and gzip members: auto (as their text) or off")
          ->type_name("MODE");
  OfferValues(*inflate, {"auto", "off"});
  AddByteSizeOption(subcommand, "--inflate-member-size",
                    options.inflate_member_size_bytes,
                    "Limit on the text of an inflated member, at most 6MiB");
  AddByteSizeOption(subcommand, "--segment-size", options.segment_size_bytes,
                    "Text per segment file");
  subcommand
      .add_option("--threads", options.threads,
                  "Compression threads; the archive does not depend on them")
      ->type_name("N")
      ->check(CountInRange(1, 1024))
      ->capture_default_str();
}

void AddKeptEncodingOptions(CLI::App& subcommand, KeptEncodingOptions& kept) {
  for (const char* const name :
       {"--codec", "--objective", "--block-size", "--partition-size",
        "--dictionary-size", "--dictionary-method"}) {
    kept.options.push_back(subcommand.add_option(name, kept.value)->group(""));
  }
}

absl::Status CheckKeptEncoding(absl::Span<const CLI::Option* const> options,
                               const char* reason) {
  for (const CLI::Option* const option : options) {
    if (option->count() > 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--", option->get_lnames().front(), " must not be given: ", reason));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<BuildOptions> MakeBuildOptions(EncodingOptions options) {
  BuildOptions build;
  QUIRE_ASSIGN_OR_RETURN(build.objective, CheckObjective(options.objective));
  const ObjectiveSettings& settings = SettingsOf(build.objective);
  if (options.reorder.empty()) {
    options.reorder = std::string(ReorderModeName(settings.reorder));
  }
  if (options.inflate.empty()) {
    options.inflate = settings.inflate ? "auto" : "off";
  }
  if (!WasGiven(options.block_size_option)) {
    options.block_size_bytes = settings.block_size_bytes;
  }
  QUIRE_ASSIGN_OR_RETURN(build.archive.codec,
                         CheckOptions(options, build.objective));
  build.archive.block_size_bytes =
      static_cast<uint32_t>(options.block_size_bytes);
  QUIRE_ASSIGN_OR_RETURN(build.dictionary_size_bytes,
                         ParseDictionarySize(options.dictionary_size));
  QUIRE_ASSIGN_OR_RETURN(build.dictionary_method,
                         ParseDictionaryMethod(options.dictionary_method));
  QUIRE_ASSIGN_OR_RETURN(build.reorder, ParseReorderMode(options.reorder));
  QUIRE_ASSIGN_OR_RETURN(build.inflate, ParseInflate(options.inflate));
  build.inflate_member_size_bytes_max = options.inflate_member_size_bytes;
  build.segment_size_bytes = options.segment_size_bytes;
  build.build_memory_bytes = options.build_memory_bytes;
  build.threads = options.threads;
  return build;
}

std::string OutputDirectory(const std::string& output) {
  std::string directory = fs::path(output).parent_path();
  return directory.empty() ? "." : directory;
}

uint64_t SeekCostBytes(const std::string& output_directory) {
  const UniqueFd directory(
      open(output_directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return directory.is_open() && DetectDrive(directory.get()).drive.kind ==
                                    DriveKind::kRotational
             ? kHardDiskSeekCostBytes
             : 0;
}

absl::Status CheckOutput(const std::string& output, bool replace,
                         const char* replace_option) {
  QUIRE_RETURN_IF_ERROR(CheckLocalPath("--output", output));
  const std::string directory = OutputDirectory(output);
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    return absl::NotFoundError(absl::StrCat(
        directory,
        ": no such directory to put the archive into; create it first"));
  }
  if (access(directory.c_str(), W_OK) != 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        directory, ": no archive can be put there: ",
        std::generic_category().message(errno), "; choose another --output"));
  }
  const fs::file_status there = fs::symlink_status(output, error);
  if (fs::exists(there) &&
      !fs::exists(fs::path(output) / kManifestFileName, error)) {
    return absl::AlreadyExistsError(absl::StrCat(
        output,
        ": is there already, and is no archive; move it away or choose "
        "another --output"));
  }
  if (!replace && fs::exists(there)) {
    return absl::AlreadyExistsError(
        absl::StrCat(output, " exists; give ", replace_option,
                     " to replace it, or another path"));
  }
  return absl::OkStatus();
}

}  // namespace quire
