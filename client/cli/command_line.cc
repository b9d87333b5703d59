// SPDX-License-Identifier: Apache-2.0
#include "client/cli/command_line.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "client/cli/document_filter.h"
#include "client/cli/security_options.h"
#include "client/cli/subcommands.h"
#include "client/quire/client.h"
#include "codecs/base/check.h"
#include "codecs/base/manual.h"
#include "codecs/base/monotonic_time.h"
#include "codecs/base/printable_text.h"

namespace quire {
namespace {

void AddNothing(CLI::App& /*subcommand*/, CliSettings& /*settings*/) {}

void AddArchive(CLI::App& subcommand, CliSettings& settings) {
  subcommand.add_option("ARCHIVE", settings.archive, "Name of the archive")
      ->type_name("")
      ->required();
}

void AddArchiveToRead(CLI::App& subcommand, CliSettings& settings) {
  AddArchive(subcommand, settings);
  subcommand
      .add_option("--uuid", settings.archive_uuid,
                  "State to read, a uuid from info; fails if the archive was "
                  "replaced")
      ->type_name("UUID");
}

void AddLsArguments(CLI::App& ls, CliSettings& settings) {
  AddArchiveToRead(ls, settings);
  ls.add_option("PREFIX", settings.prefix, "Start of the ids to list")
      ->type_name("");
  CLI::Option* delimiter =
      ls.add_option("--delimiter", settings.delimiter,
                    "Level separator, such as /: list one level below PREFIX "
                    "(not for batch)")
          ->type_name("TEXT")
          ->check([](const std::string& text) {
            return text.empty() ? std::string("must have at least 1 byte")
                                : std::string();
          });
  ls.add_flag("-l,--long", settings.long_listing,
              "Print size, time, WARC type, HTTP status, number and id; reads "
              "up to 1 KiB per crawl record");
  ls.add_flag("-0,--null", settings.null_separated,
              "End lines with NUL bytes, not newlines");
  std::vector<CLI::Option*> filters = AddFilterOptions(ls, settings.filter);
  for (CLI::Option* filter : AddWhereOptions(ls, settings.filter)) {
    filters.push_back(filter);
  }
  for (CLI::Option* filter : filters) {
    filter->excludes(delimiter);
  }
  CLI::Option* fields =
      ls.add_option(
            "--fields", settings.filter.fields,
            "Print these fields after each id, after tabs (not for batch)")
          ->type_name("NAME,...")
          ->allow_extra_args(false)
          ->excludes(delimiter);
  CLI::Option* files =
      ls.add_flag("--files", settings.lists_files,
                  "List deposited files whose paths start with PREFIX; with "
                  "-l their sizes and SHA-256")
          ->excludes(delimiter)
          ->excludes(fields);
  for (CLI::Option* filter : filters) {
    filter->excludes(files);
  }
  ls.add_flag("--key", settings.captures.by_key,
              "Take PREFIX as the start of keys (SURT) of the archive's index, "
              "such as com,example)/, and list captures in its order, as "
              "--where and --rule with digest or status do")
      ->excludes(delimiter)
      ->excludes(fields)
      ->excludes(files);
}

void AddGetArguments(CLI::App& get, CliSettings& settings) {
  AddArchiveToRead(get, settings);
  CLI::Option* ids =
      get.add_option("ID", settings.ids,
                     "Ids of documents; put -- before an id that begins with a "
                     "dash")
          ->type_name("");
  CLI::Option* files =
      get.add_option("--file", settings.files,
                     "Deposited files, such as WARCs, byte for byte, instead "
                     "of documents; ls --files lists them")
          ->type_name("PATH")
          ->expected(1)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
          ->excludes(ids);
  CLI::Option* by_ordinal =
      get.add_flag("--ordinal", settings.by_ordinal,
                   "Take IDs as document numbers, from 0, in archive order");
  CLI::Option* part =
      get.add_option("--range", settings.part,
                     "Bytes of each document or file, such as 0:1KiB; of a "
                     "crawl record with its headers")
          ->type_name("OFFSET:LENGTH");
  CLI::Option* record =
      get.add_flag("--record", settings.whole_records,
                   "Print whole crawl records, with WARC and HTTP headers");
  get.add_flag("--payload", settings.payload,
               "Print pages without headers, decoded (the default)")
      ->excludes(record)
      ->excludes(part)
      ->excludes(files);
  by_ordinal->excludes(files);
  record->excludes(files);
  CLI::Option* record_type =
      get.add_option("--record-type", settings.filter.record_types,
                     "WARC record types (default: response, else resource, "
                     "else other documents)")
          ->type_name("TYPE,...")
          ->allow_extra_args(false)
          ->excludes(by_ordinal)
          ->excludes(files);
  CLI::Option* status =
      get.add_option("--status", settings.filter.statuses,
                     "HTTP statuses: 200, 200,301 or 4xx (default: pages, else "
                     "redirects and answers to HEAD)")
          ->type_name("CODE,...")
          ->allow_extra_args(false)
          ->excludes(by_ordinal)
          ->excludes(files);
  CLI::Option* at =
      get.add_option("--at", settings.at,
                     "Latest capture time (UTC), else the oldest capture: "
                     "2022, 2022-06 or 2022-06-15T14:30+02:00")
          ->type_name("TIME")
          ->excludes(by_ordinal)
          ->excludes(files);
  CLI::Option* closest =
      get.add_option("--closest", settings.captures.closest,
                     "Take IDs as URLs in any spelling, and print the capture "
                     "closest to this time (UTC), from the archive's index")
          ->type_name("TIME")
          ->excludes(by_ordinal)
          ->excludes(files)
          ->excludes(at);
  CLI::Option* by_key =
      get.add_flag("--key", settings.captures.by_key,
                   "Take IDs as keys (SURT) of the archive's index, such as "
                   "com,example)/page: the newest capture, or with --closest")
          ->excludes(by_ordinal)
          ->excludes(files)
          ->excludes(at);
  get.add_option("--occurrence", settings.occurrence,
                 "Number of the document among those of its id, from 0, in "
                 "archive order")
      ->type_name("N")
      ->excludes(by_ordinal)
      ->excludes(files)
      ->excludes(record_type)
      ->excludes(status)
      ->excludes(at)
      ->excludes(closest)
      ->excludes(by_key)
      // CLI11 lets -1 wrap around.
      ->check([](const std::string& text) {
        uint64_t number = 0;
        return absl::SimpleAtoi(text, &number)
                   ? std::string()
                   : absl::StrCat("must be a whole number from 0, got ",
                                  QuotedText(text));
      });
}

void AddCapturesArguments(CLI::App& captures, CliSettings& settings) {
  AddArchiveToRead(captures, settings);
  CLI::Option* url =
      captures
          .add_option("URL", settings.captures.url,
                      "URL; http or https, www., letter case and order of "
                      "arguments make no difference (default: all captures)")
          ->type_name("");
  captures
      .add_flag("--key", settings.captures.by_key,
                "Take URL as a key (SURT), such as com,example)/page")
      ->needs(url);
  CLI::Option* match =
      captures
          .add_option("--match", settings.captures.match,
                      "exact, prefix, host, or domain with all hosts below")
          ->type_name("KIND")
          ->check(CLI::IsMember({"exact", "prefix", "host", "domain"}))
          ->capture_default_str()
          ->needs(url);
  CLI::Option* closest =
      captures
          .add_option("--closest", settings.captures.closest,
                      "Captures closest to this time (UTC) first")
          ->type_name("TIME")
          ->needs(url)
          ->excludes(match);
  captures
      .add_flag("--newest-first", settings.captures.newest_first,
                "Newest captures first")
      ->needs(url)
      ->excludes(match)
      ->excludes(closest);
  AddTimeOptions(captures, settings.filter);
  AddWhereOptions(captures, settings.filter);
  captures
      .add_option("--limit", settings.captures.limit, "Most captures to list")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
}

void AddRangeArguments(CLI::App& range, CliSettings& settings) {
  AddArchiveToRead(range, settings);
  range
      .add_option("OFFSET", settings.offset,
                  "First byte: a number, or 64KiB, 1MiB, 2GiB")
      ->type_name("")
      ->required();
  range.add_option("LENGTH", settings.length, "Number of bytes")
      ->type_name("")
      ->required();
}

void AddScanArguments(CLI::App& scan, CliSettings& settings) {
  AddArchiveToRead(scan, settings);
  scan.add_option("--offset", settings.offset, "First byte (default: 0)")
      ->type_name("SIZE");
  scan.add_option("--length", settings.length,
                  "Number of bytes (default: to the end)")
      ->type_name("SIZE");
}

void AddBatchArguments(CLI::App& batch, CliSettings& settings) {
  AddArchiveToRead(batch, settings);
  batch
      .add_option("FILE", settings.items_file,
                  "Items, one per line, as ls prints them, or OFFSET LENGTH "
                  "with --ranges (default: -)")
      ->type_name("");
  CLI::Option* ranges =
      batch.add_flag("--ranges", settings.ranges,
                     "Take items as OFFSET LENGTH, in bytes of the archive");
  batch
      .add_flag("--ordinal", settings.by_ordinal,
                "Take items as document numbers, from 0, in archive order")
      ->excludes(ranges);
  batch
      .add_flag("--payload", settings.payload,
                "Print pages, as get does, instead of crawl records; follow "
                "revisits")
      ->excludes(ranges);
  batch.add_flag("-0,--null", settings.null_separated,
                 "End items with NUL bytes, not newlines; an empty item is the "
                 "empty id");
  batch.add_flag("--unordered", settings.unordered,
                 "Print answers in order of arrival, not of the items");
  batch
      .add_option("--output-dir", settings.output_dir,
                  "Directory for one file per item, named after it with %XX "
                  "escapes")
      ->type_name("DIR")
      ->check(CLI::Validator(
          [](const std::string& path) {
            return std::string(path.empty() ? "DIR must not be empty" : "");
          },
          ""));
  for (CLI::Option* filter : AddFilterOptions(batch, settings.filter)) {
    filter->excludes(ranges);
  }
}

void AddExportArguments(CLI::App& subcommand, CliSettings& settings) {
  AddArchiveToRead(subcommand, settings);
  subcommand
      .add_option("--since", settings.since_uuid,
                  "Earlier state, a uuid from info: export only what was "
                  "appended after it")
      ->type_name("UUID");
  CLI::Option* output = subcommand.get_parent()->get_option("--output");
  const auto add = [&](const char* name, ExportForm form, std::string& path,
                       const char* type_name, const char* help) {
    return subcommand
        .add_option_function<std::string>(
            name,
            [&settings, &path, form](const std::string& value) {
              settings.export_form = form;
              path = value;
            },
            help)
        ->type_name(type_name)
        ->excludes(output);
  };
  CLI::Option* tar =
      add("--tar", ExportForm::kTar, settings.output, "FILE",
          "Tar file (pax), or -; compressed if FILE ends in .gz or .tgz");
  CLI::Option* warc =
      add("--warc", ExportForm::kWarc, settings.output, "FILE",
          "WARC file, or -; each record is compressed if FILE ends in .gz or "
          ".zst, which has a dictionary");
  CLI::Option* directory =
      add("--output-dir", ExportForm::kDirectory, settings.output_dir, "DIR",
          "Directory for one file per document, named as by batch "
          "--output-dir");
  tar->excludes(warc)->excludes(directory);
  warc->excludes(directory);
  CLI::Option* with_targets =
      subcommand
          .add_flag("--with-targets", settings.with_targets,
                    "Add the records that exported revisits refer to, at the "
                    "end")
          ->excludes(directory);
  CLI::Option* revisit_duplicates =
      subcommand
          .add_flag("--revisit-duplicates", settings.revisit_duplicates,
                    "Write responses with the payload of an earlier one as "
                    "revisits of it")
          ->excludes(tar)
          ->excludes(directory);
  subcommand
      .add_flag("--payload", settings.payload,
                "Write pages, as get prints them, instead of crawl records; "
                "follow revisits")
      ->excludes(warc)
      ->excludes(revisit_duplicates)
      ->excludes(with_targets);
  subcommand.add_flag("--keep-going", settings.keep_going,
                      "Skip damaged documents; above 8 MiB, write zeros for "
                      "the damage. Exit code 1 if any");
  AddFilterOptions(subcommand, settings.filter);
  AddWhereOptions(subcommand, settings.filter);
}

struct Subcommand {
  const char* name;
  const char* help;
  void (*add_arguments)(CLI::App& subcommand, CliSettings& settings);
  absl::Status (*run)(CliRun& run);
};

constexpr Subcommand kSubcommands[] = {
    {"archives", "List the archives of the server", AddNothing, RunArchives},
    {"info", "Describe an archive", AddArchive, RunInfo},
    {"ls",
     "List ids of documents, sorted; of several documents of one id, "
     "ID<TAB>@N",
     AddLsArguments, RunLs},
    {"get", "Print documents; of a crawl, pages as a browser shows them",
     AddGetArguments, RunGet},
    {"captures",
     "List captures of a URL of a crawl by time, or all, from the archive's "
     "index",
     AddCapturesArguments, RunCaptures},
    {"range", "Print a byte range of the concatenated documents",
     AddRangeArguments, RunRange},
    {"scan", "Print all documents, concatenated", AddScanArguments, RunScan},
    {"batch",
     "Print many documents or ranges, read in the order of the server's drive",
     AddBatchArguments, RunBatch},
    {"export", "Write documents to a tar, a WARC or a directory",
     AddExportArguments, RunExport},
};

constexpr char kArchiveOption[] = "--archive";

void AddServerOptions(CLI::App& app, CliSettings& settings) {
  app.add_option("-s,--server", settings.server,
                 "Server address: HOST:PORT, [IPV6]:PORT or unix:PATH")
      ->type_name("ADDRESS")
      ->envname("QUIRE_SERVER")
      ->capture_default_str();
  AddSecurityOptions(app, settings.security, settings.allow_readable_secrets);
}

void AddCommonOptions(CLI::App& app, CliSettings& settings) {
  app.add_option(kArchiveOption, settings.archive_path,
                 "Archive to read without a server, by quired: a directory or "
                 "a URL of a store; give no ARCHIVE then")
      ->type_name("PATH");
  app.add_option("--timeout", settings.timeout,
                 "Longest wait for the server's next answer, also while it "
                 "opens the archive, is busy or limits this client: seconds, "
                 "or 500ms, 2m, 1h30m")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("-o,--output", settings.output,
                 "Output file (default: -, standard output)")
      ->type_name("FILE");
  app.add_flag("--json", settings.json, "Print one JSON object per line");
  CLI::Option* quiet = app.add_flag("-q,--quiet", settings.quiet,
                                    "Print no progress and no notes");
  app.add_option("--progress", settings.progress,
                 "Progress on standard error; auto: only on a terminal")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  app.add_flag("-v,--verbose", settings.verbose,
               "Name every damaged item, and print bytes on the wire by "
               "encoding")
      ->excludes(quiet);
  app.add_flag("--force", settings.force,
               "Print binary data even to a terminal");
  app.add_option("-e,--encoding", settings.encoding,
                 "Encoding on the wire, which does not change the output; "
                 "auto: stored for scans, identity for the rest")
      ->type_name("ENCODING")
      ->check(CLI::IsMember({"identity", "fsst", "stored", "auto"}))
      ->capture_default_str();
  app.add_option("--cache-dir", settings.cache_directory,
                 "Cache of dictionaries and symbol tables, or - for none "
                 "(default: ~/.cache/quire)")
      ->type_name("DIR");
  app.add_option("--traceparent", settings.trace_parent,
                 "W3C trace context for the server's access log: "
                 "00-TRACE-PARENT-FLAGS")
      ->type_name("HEADER")
      ->envname("TRACEPARENT");
}

// The user waits for the shell meanwhile.
constexpr absl::Duration kTimeMax = absl::Seconds(1);
constexpr size_t kOfferedMax = 1000;

bool CanBeOffered(absl::string_view word) {
  return !word.empty() && std::none_of(word.begin(), word.end(), [](char c) {
    return absl::ascii_iscntrl(static_cast<unsigned char>(c));
  });
}

void AppendArchives(Client& client, absl::string_view prefix,
                    std::vector<std::string>& offered) {
  const auto archives = client.ListArchives();
  if (!archives.ok()) {
    return;
  }
  for (const v1::ArchiveDescription& archive : *archives) {
    if (absl::StartsWith(archive.name(), prefix)) {
      offered.push_back(archive.name());
    }
  }
}

void AppendIds(Client& client, const std::string& archive,
               absl::string_view prefix, std::vector<std::string>& offered) {
  const absl::Time deadline = MonotonicNow() + kTimeMax;
  DocumentLister lister =
      client.ListDocuments(archive, {.prefix = std::string(prefix)});
  while (offered.size() < kOfferedMax && MonotonicNow() < deadline) {
    const auto document = lister.Next();
    if (!document.ok() || !document->has_value()) {
      return;
    }
    const std::string& id = (*document)->id();
    // One entry for all captures of a page.
    if (CanBeOffered(id) && (offered.empty() || offered.back() != id)) {
      offered.push_back(id);
    }
  }
}

// Returns names of archives or ids of documents for a positional argument of
// that kind. Asks the server that `typed` names, else that of `settings`.
// Blocks for at most a second. Empty if no server answers. Omits words that a
// shell would not show on one line.
std::vector<std::string> WordsFromServer(const CliSettings& settings,
                                         const TypedWords& typed) {
  std::vector<std::string> offered;
  const bool is_archive = typed.positional == "ARCHIVE";
  if (!is_archive && typed.positional != "ID" && typed.positional != "PREFIX") {
    return offered;
  }
  if (typed.values.contains("archive")) {
    return offered;
  }
  ClientOptions options;
  const auto server = typed.values.find("server");
  options.address =
      server == typed.values.end() ? settings.server : server->second;
  options.security = settings.security;
  options.deadline = kTimeMax;
  options.attempts_max = 1;
  const absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Connect(std::move(options));
  if (!client.ok()) {
    return offered;
  }
  const absl::string_view prefix(typed.last.data(), typed.last.size());
  is_archive ? AppendArchives(**client, prefix, offered)
             : AppendIds(**client, typed.positionals.front(), prefix, offered);
  return offered;
}

// CLI11 takes an argument "[a,b]" of an option with many values for the two
// values a and b. Ids may look so: they get a tail that hides the bracket until
// they are parsed. One more tail is put after those that are there already, so
// that taking one off always gives back the argument.
constexpr char kTail = '\x1F';

bool LooksLikeList(absl::string_view text) {
  while (!text.empty() && text.back() == kTail) {
    text.remove_suffix(1);
  }
  return text.size() >= 2 && text.front() == '[' && text.back() == ']';
}

std::string Protect(std::string text) {
  if (LooksLikeList(text)) {
    text += kTail;
  }
  return text;
}

void Unprotect(std::string& text) {
  if (LooksLikeList(text)) {
    text.pop_back();
  }
}

Manual MakeManual() {
  Manual manual;
  manual.version = "0.1.0";
  manual.exit_codes = {
      {"0", "Success, also if the output was closed early, as by head."},
      {"1", "Something was not found, is damaged, or could not be written."},
      {"2", "The command line or the input is invalid."},
      {"3",
       "The server is unreachable, too slow or too busy, has an invalid "
       "certificate, or rejects this client."},
      {"130", "Interrupted by Ctrl-C (SIGINT). The file of -o is unchanged."}};
  manual.environment = {
      {"QUIRE_SERVER", "Default of --server."},
      {"QUIRED",
       "Program for --archive. Default: quired in PATH, or else in the "
       "directory of quire. Credentials for stores (AWS_*) and "
       "QUIRED_STORE_ENDPOINT, _REGION, _CA, _CHUNK and _REQUESTS are those of "
       "quired serve."},
      {"GRPC_VERBOSITY",
       "Log level of gRPC: NONE (the default), ERROR, INFO or DEBUG."},
      {"XDG_CACHE_HOME",
       "Directory of the default of --cache-dir, and of copies from stores for "
       "--archive."}};
  AddSecurityEnvironment(manual);
  manual.environment.push_back({"TRACEPARENT", "Default of --traceparent."});
  manual.examples = {
      {"quire --archive docs.quire get manual/index.html",
       "A document, without a server:"},
      {"quire archives", "List of the archives:"},
      {"quire ls web https://example.org/",
       "Documents of one site in the archive \"web\":"},
      {"quire ls docs manual/ --delimiter /", "One level of a directory tree:"},
      {"quire ls web --rule 'host shop.example.org status 404'",
       "Captures by host and HTTP status, in the order of the index:"},
      {"quire get web https://example.org/ -o page.html",
       "The newest version of a page:"},
      {"quire get web https://example.org/ --at 2022-06 --record",
       "Its newest WARC record up to June 2022:"},
      {"quire get web https://example.org/film.mp4 --range 1MiB:64KiB | xxd",
       "Bytes of a document:"},
      {"quire captures web example.org --match domain --from 2022",
       "Captures of a domain:"},
      {"quire get web www.example.org --closest 2022-06",
       "The page closest to a time, however its URL is spelled:"},
      {"quire range web 1GiB 64KiB | xxd | head", "Bytes of the archive:"},
      {"quire batch web ids.txt --output-dir pages",
       "Many documents, each to a file:"},
      {"quire scan web | sha256sum", "Checksum of all documents:"},
      {"quire ls web -0 | quire batch web -0 --output-dir pages",
       "Every document to a file:"},
      {"quire export web --warc web.warc.gz", "A crawl as a WARC:"},
      {"quire export web --warc web.warc.zst --revisit-duplicates",
       "A smaller one:"},
      {"quire export web --tar - | tar -tv", "Names, sizes and times:"},
      {"quire export web --since UUID --warc new.warc.gz",
       "Records that were appended after a state:"},
      {"quire scan web -e stored -v > web.txt",
       "All documents over a slow link:"}};
  return manual;
}

}  // namespace

bool HasArchivePath(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const absl::string_view argument = argv[i];
    if (argument == "--") {
      return false;
    }
    if (argument == kArchiveOption ||
        absl::StartsWith(argument, absl::StrCat(kArchiveOption, "="))) {
      return true;
    }
  }
  return false;
}

void DefineCommandLine(CLI::App& app, CliSettings& settings,
                       bool has_archive_path) {
  // Exactly one: what follows it is never taken for a subcommand.
  app.require_subcommand(1, 1);
  app.fallthrough();
  if (!has_archive_path) {
    AddServerOptions(app, settings);
  }
  AddCommonOptions(app, settings);
  for (const Subcommand& subcommand : kSubcommands) {
    CLI::App& added = *app.add_subcommand(subcommand.name, subcommand.help);
    subcommand.add_arguments(added, settings);
    if (has_archive_path) {
      added.remove_option(added.get_option_no_throw("ARCHIVE"));
    }
  }
  Manual manual = MakeManual();
  manual.word_source = [&settings](const TypedWords& typed) {
    return WordsFromServer(settings, typed);
  };
  AttachManual(app, manual);
}

void ParseCommandLine(CLI::App& app, CliSettings& settings, int argc,
                      const char* const* argv) {
  // CLI11 takes them from the back.
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) {
    arguments.push_back(Protect(argv[i]));
  }
  app.parse(std::move(arguments));
  for (std::string* text :
       {&settings.server, &settings.timeout, &settings.output,
        &settings.archive, &settings.prefix, &settings.offset,
        &settings.output_dir, &settings.items_file}) {
    Unprotect(*text);
  }
  for (std::optional<std::string>* text :
       {&settings.archive_path, &settings.cache_directory,
        &settings.archive_uuid, &settings.since_uuid, &settings.delimiter,
        &settings.filter.from, &settings.filter.to, &settings.filter.where,
        &settings.captures.url, &settings.captures.closest, &settings.at,
        &settings.part, &settings.length}) {
    if (text->has_value()) {
      Unprotect(**text);
    }
  }
  for (std::vector<std::string>* texts :
       {&settings.ids, &settings.files, &settings.filter.record_types,
        &settings.filter.statuses, &settings.filter.media_types,
        &settings.filter.fields}) {
    for (std::string& text : *texts) {
      Unprotect(text);
    }
  }
}

absl::Status RunSubcommand(const CLI::App& app, CliRun& run) {
  const auto* const found =
      std::find_if(std::begin(kSubcommands), std::end(kSubcommands),
                   [&](const Subcommand& subcommand) {
                     return app.got_subcommand(subcommand.name);
                   });
  QUIRE_CHECK(found != std::end(kSubcommands), "there is no subcommand");
  return found->run(run);
}

}  // namespace quire
