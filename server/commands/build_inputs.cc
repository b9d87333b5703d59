// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/build_inputs.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/filter/field_value.h"
#include "server/commands/subcommand_support.h"
#include "server/storage/base/cgroup.h"

namespace quire {
namespace {

// Number of names in a message that does not list all.
constexpr size_t kNamedCountMax = InputFailures::kKeptMessageCount;

void PrintNamed(const std::vector<std::string>& named, uint64_t count) {
  for (const std::string& text : named) {
    std::cerr << "  " << PrintableMessage(RemotePaths::WithUrls(text)) << "\n";
  }
  if (count > named.size()) {
    std::cerr << "  and " << FormatCount(count - named.size())
              << " more; --verbose names all\n";
  }
}

// Errors: InvalidArgument  not one character; for the usage error.
absl::Status SetDelimiter(const std::string& text, LineSplit& split) {
  if (text.empty()) {
    return absl::OkStatus();
  }
  const std::string delimiter = text == "tab" || text == "\\t" ? "\t" : text;
  if (delimiter.size() != 1 ||
      delimiter.find_first_of("\"\r\n") != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("--delimiter must be one character of ASCII, or tab, and "
                     "neither a quote nor a line end, got ",
                     QuotedText(text)));
  }
  if (!split.has_fields()) {
    return absl::InvalidArgumentError(
        "--delimiter separates the fields of --id-field, --text-field, "
        "--time-field and --field; give one of them, as lines without them are "
        "not divided");
  }
  split.delimiter = delimiter[0];
  return absl::OkStatus();
}

// Sets the fields of `split` from NAME=PATH texts.
// Errors: InvalidArgument  for the usage error.
absl::Status SetFields(const std::vector<std::string>& texts,
                       LineSplit& split) {
  for (const std::string& text : texts) {
    const size_t end = text.find('=');
    const std::string name = text.substr(0, end);
    const absl::Status status = CheckFieldName(name);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--field: ", status.message()));
    }
    if (end != std::string::npos && end + 1 == text.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--field must be NAME or NAME=PATH, got ", QuotedText(text)));
    }
    if (std::ranges::find(split.fields, name, &LineSplit::Field::name) !=
        split.fields.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--field gives ", QuotedText(name), " twice"));
    }
    split.fields.push_back(
        {.name = name,
         .path = end == std::string::npos ? name : text.substr(end + 1)});
  }
  return absl::OkStatus();
}

const char* NameOf(EntryNote note) {
  switch (note) {
    case EntryNote::kSymbolicLink:
      return "left out, a symbolic link: ";
    case EntryNote::kSpecialFile:
      return "left out, a device, pipe or socket: ";
    case EntryNote::kDanglingLink:
      return "left out, a hard link whose target is not in its tar: ";
    case EntryNote::kExcluded:
      return "left out, excluded: ";
    case EntryNote::kUnexpanded:
      return "one document, not expanded: ";
    case EntryNote::kMisnamed:
    case EntryNote::kBadRecord:
    case EntryNote::kTolerated:
    case EntryNote::kForeignFormat:
    case EntryNote::kRepeatedId:
    case EntryNote::kIrregularRecord:
      return "";
  }
  return "";
}

}  // namespace

void AddInputOptions(CLI::App& subcommand, BuildInputOptions& options) {
  subcommand
      .add_option(
          "INPUT", options.inputs,
          "Directory, tar, zip, WARC, ARC, WACZ, Quire archive, file, URL, "
          "or - (stdin)")
      ->type_name("")
      ->required();
  CLI::Option* const expand = subcommand.add_flag(
      "--expand", options.expand,
      "Expand containers in directories; otherwise each is a document");
  subcommand
      .add_option("--expand-ids", options.expand_ids,
                  "Ids of expanded documents: path (CONTAINER/ID) or member "
                  "(ID)")
      ->type_name("FORM")
      ->check(CLI::IsMember({"path", "member"}))
      ->capture_default_str()
      ->needs(expand);
  AddSplitOptions(subcommand, options);
  subcommand
      .add_option("--exclude", options.id_rules.exclude_globs,
                  "Paths to skip, with all below them; may be repeated")
      ->type_name("GLOB")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  subcommand
      .add_option("--strip-prefix", options.id_rules.strip_prefix,
                  "Beginning to remove from ids")
      ->type_name("TEXT");
  subcommand
      .add_option("--prefix", options.id_rules.prefix,
                  "Text to put before all ids, after --strip-prefix")
      ->type_name("TEXT");
  CLI::Option* const records_only = subcommand.add_flag(
      "--records-only", options.records_only,
      "Do not keep the files of WARCs, ARCs and WACZs, only their records");
  subcommand
      .add_flag("--deposited-files", options.deposited_files,
                "Keep the files of all WARCs, ARCs and WACZs, also those "
                "stored twice")
      ->excludes(records_only);
  subcommand.add_flag(
      "--keep-going", options.keep_going,
      "Skip unreadable inputs and records instead of stopping; exit code 1");
  AddInputLimitOptions(subcommand, options);
  AddStoreReadOptions(subcommand, options.store);
  subcommand.add_flag("-v,--verbose", options.verbose,
                      "Name everything that is skipped; no progress");
}

void AddSplitOptions(CLI::App& subcommand, BuildInputOptions& options) {
  CLI::Option* const split =
      subcommand
          .add_option("--split", options.split,
                      "Documents of a file: each line, with id FILE:LINE")
          ->type_name("lines")
          ->check(CLI::IsMember({"lines"}));
  subcommand
      .add_option("--id-field", options.line_split.id_field,
                  "Member of JSON Lines or column of a CSV with the id")
      ->type_name("NAME")
      ->needs(split);
  subcommand
      .add_option("--text-field", options.line_split.text_field,
                  "Member or column to store; default: whole lines")
      ->type_name("NAME")
      ->needs(split);
  subcommand
      .add_option("--time-field", options.line_split.time_field,
                  "Member or column with the time of the document (RFC 3339)")
      ->type_name("NAME")
      ->needs(split);
  subcommand
      .add_option("--field", options.fields,
                  "Member or column to keep as a typed field; may be repeated")
      ->type_name("NAME[=PATH]")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->needs(split);
  subcommand
      .add_option("--delimiter", options.delimiter,
                  "Character between columns, or tab; default: a comma")
      ->type_name("CHAR")
      ->needs(split);
}

void AddInputLimitOptions(CLI::App& subcommand, BuildInputOptions& options) {
  AddByteSizeOption(subcommand, "--input-size-max",
                    options.input_size_bytes_max,
                    "Limit on the decompressed size of all inputs, by default "
                    "16TiB");
  AddByteSizeOption(subcommand, "--window-max", options.window_size_bytes_max,
                    "Memory for decompressing; zstd --long=31 needs 2GiB");
}

absl::StatusOr<SourceOptions> MakeSourceOptions(
    const BuildInputOptions& options, const std::string& spool_directory) {
  if (std::count(options.inputs.begin(), options.inputs.end(), "-") > 1) {
    return absl::InvalidArgumentError(
        "- (standard input) must be given only once, for it can be read only "
        "once");
  }
  if (options.input_size_bytes_max == uint64_t{0}) {
    return absl::InvalidArgumentError(
        "--input-size-max must be at least 1 byte, got 0");
  }
  LineSplit fields = options.line_split;
  QUIRE_RETURN_IF_ERROR(SetFields(options.fields, fields));
  QUIRE_RETURN_IF_ERROR(SetDelimiter(options.delimiter, fields));
  if (options.window_size_bytes_max < kWindowSizeBytesMin ||
      options.window_size_bytes_max > kWindowSizeBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--window-max must be ", FormatByteSizeExact(kWindowSizeBytesMin),
        " to ", FormatByteSizeExact(kWindowSizeBytesMax), ", got ",
        FormatByteSizeExact(options.window_size_bytes_max)));
  }
  for (const std::string& input : options.inputs) {
    QUIRE_RETURN_IF_ERROR(CheckLocalPath("an input", input));
  }
  if (!fields.id_field.empty() && fields.id_field == fields.text_field) {
    return absl::InvalidArgumentError(
        absl::StrCat("--id-field and --text-field must differ, got ",
                     QuotedText(fields.id_field), " for both"));
  }
  SourceOptions source;
  if (!options.split.empty()) {
    source.split = fields;
  }
  source.spool_directory = spool_directory;
  source.input_size_bytes_max = options.input_size_bytes_max;
  source.window_size_bytes_max = options.window_size_bytes_max;
  source.expand = options.expand;
  source.decode_threads = UsableCores();
  source.skip_damage = options.keep_going;
  source.member_ids = options.expand_ids == "member"
                          ? MemberIds::kMember
                          : MemberIds::kPathAndMember;
  QUIRE_ASSIGN_OR_RETURN(source.id_rules, IdRules::Create(options.id_rules));
  return source;
}

absl::Status CheckOutsideInputs(const std::string& option,
                                const std::string& output,
                                const std::string& output_directory,
                                const BuildInputOptions& options) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path archive =
      fs::canonical(output_directory, error) / fs::path(output).filename();
  for (const std::string& input : options.inputs) {
    if (input == "-" || !fs::is_directory(input, error)) {
      continue;
    }
    const fs::path directory = fs::canonical(input, error);
    const auto mismatch = std::mismatch(directory.begin(), directory.end(),
                                        archive.begin(), archive.end());
    if (mismatch.first == directory.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          option, " must be outside all inputs, and ", output,
          " is inside the input ", input,
          ", so the archive would become part of itself; give another path"));
    }
  }
  return absl::OkStatus();
}

InputReport::InputReport(const BuildInputOptions& options)
    : keep_going_(options.keep_going),
      verbose_(options.verbose),
      expand_(options.expand),
      failures_([this](const std::string& message) {
        if (verbose_) {
          std::cerr << "left out, cannot be read: " << PrintableMessage(message)
                    << "\n";
        }
      }) {}

NoteListener InputReport::listener() {
  return [this](EntryNote note, const std::string& text) { Hear(note, text); };
}

void InputReport::Hear(EntryNote note, const std::string& text) {
  if (verbose_) {
    std::cerr << NameOf(note) << PrintableMessage(text) << "\n";
  }
  if (note == EntryNote::kUnexpanded) {
    ++unexpanded_count_;
    return;
  }
  Sentences* const sentences = note == EntryNote::kMisnamed        ? &misnamed_
                               : note == EntryNote::kForeignFormat ? &foreign_
                               : note == EntryNote::kBadRecord  ? &bad_records_
                               : note == EntryNote::kTolerated  ? &tolerated_
                               : note == EntryNote::kRepeatedId ? &repeated_ids_
                               : note == EntryNote::kIrregularRecord
                                   ? &irregular_records_
                                   : nullptr;
  if (sentences == nullptr) {
    return;
  }
  ++sentences->count;
  if (!verbose_ && sentences->first.size() < kNamedCountMax) {
    sentences->first.push_back(text);
  }
}

void InputReport::PrintSentences(const Sentences& sentences, const char* one,
                                 const char* many) const {
  if (sentences.count == 0) {
    return;
  }
  std::cerr << "warning: " << FormatCounted(sentences.count, one, many)
            << (verbose_ ? "\n" : ":\n");
  if (!verbose_) {
    PrintNamed(sentences.first, sentences.count);
  }
}

void InputReport::PrintWarnings(const SkippedEntries& skipped) const {
  std::vector<std::string> parts;
  const auto add = [&parts](uint64_t count, const char* one, const char* many) {
    if (count > 0) {
      parts.push_back(FormatCounted(count, one, many));
    }
  };
  add(skipped.symbolic_links, "symbolic link", "symbolic links");
  add(skipped.special_files, "device, pipe or socket",
      "devices, pipes or sockets");
  add(skipped.dangling_links, "hard link whose target is not in its tar",
      "hard links whose targets are not in their tar");
  if (!parts.empty()) {
    std::cerr << "warning: left out: " << absl::StrJoin(parts, ", ")
              << (verbose_ ? "" : "; --verbose names them") << "\n";
  }
  PrintSentences(misnamed_, "file does not match its name",
                 "files do not match their names");
  PrintSentences(
      foreign_,
      "file is kept as it is, in a format that other programs convert",
      "files are kept as they are, in formats that other programs "
      "convert");
  PrintSentences(
      bad_records_,
      "record lacks a field or is malformed; it is kept, by FILE:LINE",
      "records lack a field or are malformed; they are kept, by FILE:LINE");
  PrintSentences(tolerated_,
                 "part of the inputs is unusual or changed; it was read",
                 "parts of the inputs are unusual or changed; they were read");
  PrintSentences(repeated_ids_, "record repeats an id", "records repeat an id");
  PrintSentences(irregular_records_,
                 "fault of a record, which is kept as it is",
                 "faults of records, which are kept as they are");
  if (failures_.count() > 0) {
    std::cerr << "warning: "
              << FormatCounted(failures_.count(),
                               "input, file, member or record could not be "
                               "read and is left out, except what is named as "
                               "being in the archive",
                               "inputs, files, members or records could not be "
                               "read and are left out, except what is named as "
                               "being in the archive")
              << (verbose_ ? "\n" : ":\n");
    if (!verbose_) {
      PrintNamed(failures_.messages(), failures_.count());
    }
  }
}

void InputReport::PrintHints(const SkippedEntries& skipped) const {
  if (skipped.excluded > 0) {
    std::cerr << "  "
              << FormatCounted(skipped.excluded,
                               "document or directory was excluded",
                               "documents or directories were excluded")
              << "\n";
  }
  if (unexpanded_count_ > 0 && !expand_) {
    std::cerr << "hint: "
              << FormatCounted(
                     unexpanded_count_,
                     "file of the directories is a tar, zip, WARC, ARC or "
                     "WACZ, and is one document",
                     "files of the directories are tars, zips, WARCs, ARCs or "
                     "WACZs, and each is one document")
              << "; --expand splits them into documents\n";
  }
}

absl::Status OpenRemoteInputs(RemotePaths& paths, BuildInputOptions& options) {
  for (std::string& input : options.inputs) {
    QUIRE_ASSIGN_OR_RETURN(input, paths.OpenInput(input));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::unique_ptr<Source>>> OpenInputs(
    const std::vector<std::string>& inputs, const SourceOptions& options,
    InputFailures* failures) {
  std::vector<std::unique_ptr<Source>> sources;
  absl::Status last;
  for (size_t i = 0; i < inputs.size(); ++i) {
    absl::StatusOr<std::unique_ptr<Source>> source =
        OpenSource(inputs[i], options);
    if (source.ok()) {
      sources.push_back(*std::move(source));
      continue;
    }
    last = source.status();
    if (failures == nullptr || !failures->Tolerate(i, last)) {
      return last;
    }
  }
  if (sources.empty()) {
    return absl::Status(
        last.code(),
        absl::StrCat("none of the inputs can be opened, the last because of: ",
                     last.message()));
  }
  return sources;
}

}  // namespace quire
