// SPDX-License-Identifier: GPL-3.0-or-later
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/number_range.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/progress_meter.h"
#include "codecs/filter/filter.h"
#include "codecs/filter/short_rule.h"
#include "server/archive/files/archive_directory.h"
#include "server/archive/files/file_io.h"
#include "server/commands/build_run.h"
#include "server/commands/interrupt_flag.h"
#include "server/commands/quired_commands.h"
#include "server/commands/subcommand_support.h"
#include "server/redaction/redact.h"
#include "server/storage/base/cgroup.h"

namespace quire {
namespace {

constexpr char kRedactFooter[] =
    R"(IDS has one id per line, byte for byte, as quire ls prints them; empty lines are
skipped. All captures and records of an id are removed; of ID<TAB>@N only number N, from
0, of the documents with that id. If a document is not in ARCHIVE, nothing is changed.
If some documents of an id stay, their numbers change: where a repeated command would
remove others, --uuid is required.

--where removes the documents that match FILTER, over the fields of the archive and id,
ordinal, size, time, type and record_type, of hosts and domains, and of the digest and
status of captures; with IDS also those that IDS names. --rule RULE is a short form:
  domain news.test 2019..2021       the domain and its hosts, in these years
  host news.test status 404         one host, with and without www., any port
  digest sha1:OB3QTUZLBNUR7BXZQ4OPLCKEKUZZNKRJ
It prints how many match; --dry-run --list prints which, as lines of IDS, and so does
quire ls --rule. Documents that were removed before match nothing. If none matches, FILTER names a field that ARCHIVE does not
have, or fields that FILTER needs are damaged, nothing is changed. Quire's documentation
has the language in filters.md.

The text of the documents becomes zeros of the same length, also in the dictionary;
their ids become empty and their attributes and fields none, except for the record type,
which is "withdrawn". Ordinals and offsets of all documents stay. Text that other documents have
too stays in these. Clients that read an earlier state continue: the documents are
withdrawn in it, too.

All of ARCHIVE is read. If the dictionary changes, all segments are written anew, which
needs as much space as ARCHIVE has; otherwise those with the documents are. ARCHIVE is
at any moment the old or the new archive, also if the command is killed; ARCHIVE.partial
holds the new files until they are complete. The old files are then removed: until then
they have the text, and so have backups, copies and caches of clients, and processes
that have the files open. After a kill repeat the command: it removes what is left, or
reports that the ids are gone. Equal archives and ids give equal archives, so replicas
can run the same command. Send SIGHUP to a server that has ARCHIVE open.

Revisits that stay although the response with their payload goes are named in a warning,
and so are metadata and conversion records without a URL, as they may refer to it.

Archives in the same directory that have the same dictionary, as those of build --like
have, are named: it has text of the documents there, too. Others are not known.

--prove reads the new archive and the old text again, and prints what it examined: that
no window of 32 bytes that only the removed documents had is left, in text, ids or fields.
Shorter fragments can be, for example symbols of at most 8 bytes in the symbol table.

The exit code is 1 if an id is not there, no document matches FILTER, the archive is
damaged, old files stay or the proof fails.

Examples:
  quired redact web.quire ids --dry-run
  quired redact web.quire ids --prove > redacted.txt
  echo http://example.org/private | quired redact web.quire -
  quire ls web http://example.org/private/ -0 | quired redact web.quire - -0
  quired redact web.quire --rule 'domain news.test 2019..2021' --dry-run --list
  quired redact rows.quire --where 'lang = "de" and time < 2020-01-01' --dry-run)";

struct RedactCommandOptions {
  std::string archive;
  // Empty: none.
  std::string ids;
  bool null_separated = false;
  std::optional<std::string> where;
  std::string uuid;
  bool dry_run = false;
  bool list = false;
  bool prove = false;
  uint32_t threads = UsableCores();
  bool quiet = false;
};

// With `null_separated` every item ends with a NUL byte, else with a newline,
// and empty lines are not items.
// Errors: InvalidArgument  there are no ids; as ErrnoStatus().
absl::StatusOr<std::vector<std::string>> ReadIds(const std::string& path,
                                                 bool null_separated) {
  std::ifstream file;
  const bool is_stdin = path == "-";
  if (!is_stdin) {
    errno = 0;
    file.open(path, std::ios::binary);
    if (!file.is_open()) {
      return ErrnoStatus(errno, path, "open");
    }
  }
  std::istream& in = is_stdin ? std::cin : file;
  const std::string name = is_stdin ? "standard input" : path;
  if (is_stdin && isatty(STDIN_FILENO) != 0) {
    std::cerr << "reading ids from the terminal, one per line; Ctrl-D ends "
                 "them\n";
  }
  std::vector<std::string> ids;
  errno = 0;
  const char delimiter = null_separated ? '\0' : '\n';
  for (std::string line; std::getline(in, line, delimiter);) {
    if (!line.empty() || null_separated) {
      ids.push_back(line);
    }
  }
  // A directory can be opened and not read.
  if (in.bad() || errno != 0) {
    return ErrnoStatus(errno != 0 ? errno : EIO, name, "read");
  }
  if (ids.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has no ids; expected one per line"));
  }
  return ids;
}

const char* PhaseName(RedactPhase phase) {
  switch (phase) {
    case RedactPhase::kSelect:
      return "selecting";
    case RedactPhase::kCompare:
      return "comparing";
    case RedactPhase::kRewrite:
      return "rewriting";
    case RedactPhase::kProve:
      return "proving";
  }
  return "";
}

// Prints by what the documents were selected, if a filter did.
void PrintSelection(const RedactCommandOptions& options,
                    const RedactReport& report) {
  if (!options.where.has_value()) {
    return;
  }
  std::cout << "\n  selected: "
            << FormatCounted(report.matched_count, "document matches",
                             "documents match")
            << " --where";
  if (!options.ids.empty()) {
    std::cout << ", "
              << FormatCounted(report.named_count, "is named", "are named")
              << " by "
              << (options.ids == "-" ? "standard input"
                                     : PrintableMessage(options.ids));
    const uint64_t both_count =
        report.matched_count + report.named_count - report.document_count;
    std::cout << ", " << FormatCounted(both_count, "is", "are") << " both";
  }
}

void PrintReport(const RedactCommandOptions& options,
                 const RedactReport& report) {
  const std::string& path = options.archive;
  const bool is_planned = !report.after.has_value();
  std::cout << PrintableMessage(path) << ": "
            << (is_planned ? "would remove " : "removed ")
            << FormatCounted(report.document_count, "document", "documents")
            << " with " << FormatByteSize(report.size_bytes) << " of text";
  if (report.shared_size_bytes > 0) {
    std::cout << "; " << FormatByteSize(report.shared_size_bytes)
              << " of it stays in other documents that have it too";
  }
  PrintSelection(options, report);
  if (report.withdrawn_file_count > 0) {
    std::cout << "\n  deposited files: "
              << FormatCounted(report.withdrawn_file_count, "has", "have")
              << (is_planned ? " text of them, and could not be read any more"
                             : " text of them, and cannot be read any more");
  }
  if (report.renumbered_id_count > 0) {
    std::cout << "\n  numbers: of "
              << FormatCounted(report.renumbered_id_count, "id", "ids")
              << " other documents stay, and N in ID<TAB>@N "
              << (is_planned ? "would count" : "counts") << " only these";
  }
  std::cout << "\n  blocks: "
            << FormatCounted(report.changed_block_count, "has", "have")
            << " other text, "
            << FormatCounted(report.reencoded_block_count, "more is",
                             "more are")
            << " encoded anew\n  segments: "
            << FormatCount(report.segment_count) << " of "
            << FormatCount(report.before.segment_count)
            << (is_planned ? " would be new, with " : " are new, with ")
            << FormatByteSize(report.stored_text_size_bytes)
            << " of stored text\n";
  if (report.before.dictionary_size_bytes > 0) {
    std::cout << "  dictionary: "
              << FormatCounted(report.dictionary_zeroed_bytes, "byte", "bytes")
              << " of " << FormatByteSize(report.before.dictionary_size_bytes)
              << (is_planned ? " would become zeros\n" : " became zeros\n");
  }
  if (!is_planned) {
    std::cout << "  on disk " << FormatByteSize(report.after->stored_size_bytes)
              << ", before " << FormatByteSize(report.before.stored_size_bytes)
              << "\n  uuid " << report.after->uuid << ", before "
              << report.before.uuid << "\n";
  }
}

// Returns true if all is as it should be.
bool PrintProof(const std::string& path, const RedactionProof& proof) {
  std::cout << PrintableMessage(path) << ": "
            << (proof.failures.empty() ? "proved" : "NOT PROVED") << ":\n  "
            << FormatCounted(proof.document_count, "removed document has",
                             "removed documents have")
            << " neither id nor attributes nor fields, and "
            << FormatByteSize(proof.size_bytes) << " of zeros\n  "
            << FormatCounted(proof.window_count, "window", "windows")
            << " of 32 bytes that only their text, ids, fields and compressed "
               "members had\n  searched: "
            << FormatByteSize(proof.text_size_bytes) << " of text in "
            << FormatCounted(proof.block_count, "block", "blocks")
            << ", with members inflated\n  searched: "
            << FormatByteSize(proof.dictionary_size_bytes)
            << " of dictionary\n  searched: ids and media types of "
            << FormatCounted(proof.id_count, "document", "documents") << "\n";
  if (proof.field_string_count > 0) {
    std::cout << "  searched: "
              << FormatCounted(proof.field_string_count, "string", "strings")
              << " of fields\n";
  }
  for (const std::string& failure : proof.failures) {
    std::cout << "  FOUND: " << PrintableMessage(failure) << "\n";
  }
  if (proof.failures.empty()) {
    std::cout << "  found: none\n";
  }
  return proof.failures.empty();
}

// Returns the archives next to the one at `path` that have the dictionary,
// such as those of build --like.
std::vector<std::string> ArchivesWithDictionary(const std::string& path,
                                                const std::string& hash) {
  namespace fs = std::filesystem;
  std::vector<std::string> found;
  const fs::path parent = fs::path(path).parent_path();
  std::error_code error;
  fs::directory_iterator entry(parent.empty() ? fs::path(".") : parent, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string other =
        (parent / entry->path().filename()).lexically_normal().string();
    std::error_code ignored;
    if (!fs::is_directory(entry->path(), ignored) ||
        fs::equivalent(path, other, ignored)) {
      continue;
    }
    absl::StatusOr<ArchiveDirectory> directory = OpenDirectoryOnly(other);
    if (directory.ok() && ReadManifest(*directory).ok() &&
        directory->manifest.Describe(0).dictionary_hash == hash) {
      found.push_back(other);
    }
  }
  std::ranges::sort(found);
  return found;
}

// Names records that stay and may refer to removed documents.
void WarnOfReferences(const std::string& path, const RedactReport& report) {
  for (const std::string& sentence : DescribeReferences(report.references)) {
    std::cerr << "warning: " << PrintableMessage(path) << ": " << sentence
              << "\n";
  }
}

// Names archives whose dictionary has text of the removed documents.
void WarnOfDictionaries(const std::string& path, const RedactReport& report) {
  if (report.dictionary_zeroed_bytes == 0) {
    return;
  }
  for (const std::string& other :
       ArchivesWithDictionary(path, report.before.dictionary_hash)) {
    std::cerr << "warning: " << PrintableMessage(other)
              << " has the dictionary that " << PrintableMessage(path)
              << (report.after.has_value() ? " had" : " has")
              << ", with text of the documents: remove them from it too, or "
                 "build it again\n";
  }
}

int RunRedact(RedactCommandOptions options) {
  options.archive = TrimSlashes(std::move(options.archive));
  if (options.dry_run && options.prove) {
    return ReportUsage("redact",
                       "--prove examines the changed archive, and --dry-run "
                       "changes none; give one of them");
  }
  if (options.list && !options.dry_run) {
    return ReportUsage("redact",
                       "--list prints what would be removed; add --dry-run");
  }
  absl::StatusOr<std::vector<std::string>> ids = std::vector<std::string>();
  if (!options.ids.empty()) {
    ids = ReadIds(options.ids, options.null_separated);
  } else if (!options.where.has_value()) {
    return ReportUsage("redact", "IDS or --where is required");
  } else if (options.null_separated && !options.list) {
    return ReportUsage(
        "redact", "--null is about IDS and --list, neither of which is given");
  }
  if (absl::IsInvalidArgument(ids.status())) {
    return ReportUsage("redact", ids.status().message());
  }
  if (!ids.ok()) {
    return ReportFailure(ids.status());
  }
  std::optional<Filter> where;
  if (options.where.has_value()) {
    absl::StatusOr<Filter> parsed = Filter::Parse(*options.where);
    if (!parsed.ok()) {
      return ReportUsage("redact",
                         absl::StrCat("--where: ", parsed.status().message()));
    }
    where = *std::move(parsed);
  }
  const InterruptFlag interrupt;
  std::optional<ProgressMeter> meter;
  if (!options.quiet && isatty(STDERR_FILENO) != 0) {
    meter.emplace(std::cerr, &absl::Now, ProgressMeterOptions{});
  }
  RedactOptions redact = {.archive_uuid = options.uuid,
                          .where = std::move(where),
                          .dry_run = options.dry_run,
                          .with_items = options.list,
                          .prove = options.prove,
                          .threads = options.threads,
                          .cancel = InterruptFlag::flag()};
  redact.on_progress = [&meter](const RedactProgress& progress) {
    if (meter.has_value()) {
      meter->Update({.phase = PhaseName(progress.phase),
                     .item_count = progress.done_bytes >> 20,
                     .item_name = "MiB"});
    }
  };
  const absl::StatusOr<RedactReport> report =
      RedactArchive(options.archive, *ids, redact);
  meter.reset();
  if (!report.ok()) {
    const int exit_code = ReportFailure(report.status());
    interrupt.EndProcessIfSet();
    return exit_code;
  }
  if (options.list) {
    for (const std::string& item : report->items) {
      std::cout << item << (options.null_separated ? '\0' : '\n');
    }
  } else if (!options.quiet || options.dry_run) {
    PrintReport(options, *report);
  }
  WarnOfReferences(options.archive, *report);
  WarnOfDictionaries(options.archive, *report);
  bool is_good = true;
  if (report->proof.has_value()) {
    is_good = PrintProof(options.archive, *report->proof);
  }
  if (!report->old_files.ok()) {
    return ReportFailure(absl::Status(
        report->old_files.code(),
        absl::StrCat(report->old_files.message(),
                     "; the documents were removed, but files of the old "
                     "archive may still have their text: remove what quired "
                     "inspect does not list")));
  }
  return is_good ? kExitGood : kExitFailed;
}

}  // namespace

void AddRedactCommand(CLI::App& app, int& exit_code) {
  const auto [subcommand, options] = AddSubcommand<RedactCommandOptions>(
      app, exit_code, "redact", "Remove documents from an archive",
      kRedactFooter, &RunRedact);
  AddArchiveArgument(*subcommand, options->archive);
  subcommand
      ->add_option(
          "IDS", options->ids,
          "List of documents, a line ID or ID<TAB>@N each; -: standard "
          "input")
      ->type_name("");
  CLI::Option* const where =
      subcommand
          ->add_option("--where", options->where,
                       "Remove the documents that match: 'lang = \"de\" and "
                       "time < 2020-01-01'")
          ->type_name("FILTER");
  subcommand
      ->add_option("--rule", options->where,
                   "Short form of --where: 'domain news.test 2019..2021'")
      ->type_name("RULE")
      ->excludes(where)
      ->transform(CLI::Validator(ReplaceShortRule, ""));
  subcommand->add_flag("-0,--null", options->null_separated,
                       "Read lines that end in NUL, as those of quire ls -0");
  subcommand
      ->add_option("--uuid", options->uuid,
                   "Uuid that ARCHIVE must have, as of quired inspect")
      ->type_name("UUID");
  subcommand->add_flag("--dry-run", options->dry_run,
                       "Print what would change; change nothing");
  subcommand->add_flag("--list", options->list,
                       "Print only the documents, as IDS; requires --dry-run");
  subcommand->add_flag("--prove", options->prove,
                       "Examine the new archive, and print the checks");
  subcommand
      ->add_option("--threads", options->threads,
                   "Threads; the archive does not depend on them")
      ->type_name("N")
      ->check(CountInRange(1, 1024))
      ->capture_default_str();
  subcommand->add_flag("-q,--quiet", options->quiet,
                       "No progress and no summary, only a proof and errors");
}

}  // namespace quire
