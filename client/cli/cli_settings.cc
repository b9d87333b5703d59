// SPDX-License-Identifier: Apache-2.0
#include "client/cli/cli_settings.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "client/cli/complete_words.h"
#include "client/cli/security_options.h"
#include "client/quire/wire_encoding.h"
#include "codecs/base/duration_text.h"
#include "codecs/base/manual.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/base/trace_parent.h"

namespace quire {
namespace {

constexpr absl::Duration kTimeoutMin = absl::Milliseconds(1);

void AddArchive(CLI::App& subcommand, CliSettings& settings) {
  subcommand.add_option("ARCHIVE", settings.archive, "Name of the archive")
      ->type_name("")
      ->required();
}

void AddArchiveToRead(CLI::App& subcommand, CliSettings& settings) {
  AddArchive(subcommand, settings);
  subcommand
      .add_option(
          "--uuid", settings.archive_uuid,
          "Read the archive in this state, whose uuid info prints, without "
          "what was appended later. Fails if the archive was replaced")
      ->type_name("UUID");
}

void DefineListings(CLI::App& app, CliSettings& settings) {
  app.add_subcommand("archives", "List the archives of the server");

  CLI::App* info = app.add_subcommand("info", "Describe an archive");
  AddArchive(*info, settings);

  CLI::App* ls = app.add_subcommand(
      "ls",
      "List the ids of documents, sorted. Several documents of one id are "
      "ID<TAB>@N, with N from 0. batch and quired redact read this list");
  AddArchiveToRead(*ls, settings);
  ls->add_option("PREFIX", settings.prefix, "Start of the ids to list")
      ->type_name("");
  CLI::Option* delimiter =
      ls->add_option("--delimiter", settings.delimiter,
                     "Cut ids after the first TEXT that follows PREFIX, and "
                     "list each once: with / one level of a directory tree. "
                     "batch cannot read such a list")
          ->type_name("TEXT")
          ->check([](const std::string& text) {
            return text.empty() ? std::string("must have at least 1 byte")
                                : std::string();
          });
  ls->add_flag(
      "-l,--long", settings.long_listing,
      "Table of size, capture time, WARC record type, HTTP status, number and "
      "id. Reads up to 1 KiB of each crawl record, for the status");
  ls->add_flag("-0,--null", settings.null_separated,
               "NUL bytes instead of newlines");
  for (CLI::Option* filter : AddFilterOptions(*ls, settings.filter)) {
    filter->excludes(delimiter);
  }
}

void DefineGet(CLI::App& app, CliSettings& settings) {
  CLI::App* get = app.add_subcommand(
      "get",
      "Print documents, in the order given. Of a crawl's record, print the "
      "page: without headers, and decompressed");
  AddArchiveToRead(*get, settings);
  get->add_option("ID", settings.ids,
                  "Ids of documents. Put -- before ids that begin with a dash")
      ->type_name("")
      ->required();
  CLI::Option* by_ordinal =
      get->add_flag("--ordinal", settings.by_ordinal,
                    "IDs are numbers of documents, from 0, in archive order");
  CLI::Option* part =
      get->add_option("--range", settings.part,
                      "Bytes of each document, such as 0:1KiB. Of a crawl's "
                      "record, bytes of the record with its headers")
          ->type_name("OFFSET:LENGTH");
  CLI::Option* record =
      get->add_flag("--record", settings.whole_records,
                    "Whole records of a crawl, with WARC and HTTP headers");
  get->add_flag("--payload", settings.payload,
                "Pages, as a browser shows them: without headers and chunks, "
                "and decompressed (gzip, deflate, br, zstd). The default")
      ->excludes(record)
      ->excludes(part);
  CLI::Option* record_type =
      get->add_option("--record-type", settings.filter.record_types,
                      "WARC record types. Default: responses; if the id has "
                      "none, resources; if none, other documents")
          ->type_name("TYPE,...")
          ->allow_extra_args(false)
          ->excludes(by_ordinal);
  CLI::Option* status =
      get->add_option(
             "--status", settings.filter.statuses,
             "HTTP statuses of a crawl: 200, 200,301 or 4xx. Default: pages; "
             "if the id has none, redirects and answers to HEAD")
          ->type_name("CODE,...")
          ->allow_extra_args(false)
          ->excludes(by_ordinal);
  CLI::Option* at =
      get->add_option(
             "--at", settings.at,
             "Newest capture at or before this time (UTC), or the oldest if "
             "all are later: 2022, 2022-06, 2022-06-15T14:30+02:00 or "
             "20220615123045. Default: the newest")
          ->type_name("TIME")
          ->excludes(by_ordinal);
  get->add_option(
         "--occurrence", settings.occurrence,
         "Number of the document among all of its id, from 0, in archive order")
      ->type_name("N")
      ->excludes(by_ordinal)
      ->excludes(record_type)
      ->excludes(status)
      ->excludes(at)
      // CLI11 lets -1 wrap around.
      ->check([](const std::string& text) {
        uint64_t number = 0;
        return absl::SimpleAtoi(text, &number)
                   ? std::string()
                   : absl::StrCat("must be a whole number from 0, got ",
                                  QuotedText(text));
      });
}

void DefineReads(CLI::App& app, CliSettings& settings) {
  CLI::App* range = app.add_subcommand(
      "range", "Print bytes of the archive: its documents, end to end");
  AddArchiveToRead(*range, settings);
  range
      ->add_option("OFFSET", settings.offset,
                   "First byte: a number, or 64KiB, 1MiB, 2GiB")
      ->type_name("")
      ->required();
  range->add_option("LENGTH", settings.length, "Number of bytes")
      ->type_name("")
      ->required();

  CLI::App* scan = app.add_subcommand(
      "scan", "Print the archive: its documents, end to end");
  AddArchiveToRead(*scan, settings);
  scan->add_option("--offset", settings.offset, "First byte. Default: 0")
      ->type_name("SIZE");
  scan->add_option("--length", settings.length,
                   "Number of bytes. Default: to the end")
      ->type_name("SIZE");
}

void DefineBatch(CLI::App& app, CliSettings& settings) {
  CLI::App* batch =
      app.add_subcommand("batch",
                         "Print many documents or ranges, which the server "
                         "reads in the order of its drive");
  AddArchiveToRead(*batch, settings);
  batch
      ->add_option(
          "FILE", settings.items_file,
          "File of items, one a line: ids as ls prints them, or OFFSET LENGTH "
          "with --ranges. Empty lines are skipped. Default: -, standard input")
      ->type_name("");
  CLI::Option* ranges =
      batch->add_flag("--ranges", settings.ranges,
                      "Items are OFFSET LENGTH, in bytes of the archive");
  batch
      ->add_flag("--ordinal", settings.by_ordinal,
                 "Items are numbers of documents, from 0, in archive order")
      ->excludes(ranges);
  batch
      ->add_flag("--payload", settings.payload,
                 "Pages instead of crawl records, as get prints them. Follows "
                 "revisits")
      ->excludes(ranges);
  batch->add_flag(
      "-0,--null", settings.null_separated,
      "NUL bytes end items, not newlines. An empty item is the empty id");
  batch->add_flag("--unordered", settings.unordered,
                  "Answers in the order of their arrival, not of the items");
  batch
      ->add_option(
          "--output-dir", settings.output_dir,
          "Directory for one file an item, named by it. Bytes other than "
          "letters, digits, '.', '_' and '-', and a leading dot, become %XX. "
          "@N goes to the end. Long names are cut, and end with %% and a hash")
      ->type_name("DIR");
  for (CLI::Option* filter : AddFilterOptions(*batch, settings.filter)) {
    filter->excludes(ranges);
  }
}

void DefineExport(CLI::App& app, CliSettings& settings) {
  CLI::App* subcommand = app.add_subcommand(
      "export", "Write documents to a tar, a WARC or a directory");
  AddArchiveToRead(*subcommand, settings);
  subcommand
      ->add_option("--since", settings.since_uuid,
                   "State of the archive, whose uuid info printed: exports "
                   "what was appended after it")
      ->type_name("UUID");
  CLI::Option* output = app.get_option("--output");
  const auto add = [&](const char* name, ExportForm form, std::string& path,
                       const char* type_name, const char* help) {
    return subcommand
        ->add_option_function<std::string>(
            name,
            [&settings, &path, form](const std::string& value) {
              settings.export_form = form;
              path = value;
            },
            help)
        ->type_name(type_name)
        ->excludes(output);
  };
  CLI::Option* tar = add("--tar", ExportForm::kTar, settings.output, "FILE",
                         "Tar (pax), or - for standard output. Ids become "
                         "names. Compressed if FILE ends in .gz or .tgz");
  CLI::Option* warc =
      add("--warc", ExportForm::kWarc, settings.output, "FILE",
          "WARC, or - for standard output: a crawl's records unchanged, those "
          "of ARC files as responses, other documents as resources. Each is "
          "compressed if FILE ends in .gz");
  CLI::Option* directory =
      add("--output-dir", ExportForm::kDirectory, settings.output_dir, "DIR",
          "Directory for one file a document, with the names of batch "
          "--output-dir");
  tar->excludes(warc)->excludes(directory);
  warc->excludes(directory);
  CLI::Option* with_targets =
      subcommand
          ->add_flag("--with-targets", settings.with_targets,
                     "Adds the records to which selected revisits refer, at "
                     "the end, whatever the filters say")
          ->excludes(directory);
  subcommand
      ->add_flag("--payload", settings.payload,
                 "Pages instead of crawl records, as get prints them. Follows "
                 "revisits. Default of --record-type then: "
                 "response,revisit,resource and no WARC record")
      ->excludes(warc)
      ->excludes(with_targets);
  subcommand->add_flag(
      "--keep-going", settings.keep_going,
      "Leaves out damaged documents, names each, and ends with exit code 1. In "
      "a document over 8 MiB the damaged part becomes zeros");
  AddFilterOptions(*subcommand, settings.filter);
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
      {"2", "The command line or the input is not understood."},
      {"3",
       "No server can be reached, it did not answer in time, its certificate "
       "is wrong, or it rejects this client."},
      {"130", "Interrupted by Ctrl-C (SIGINT). The file of -o is unchanged."}};
  manual.environment = {
      {"QUIRE_SERVER", "Default of --server."},
      {"GRPC_VERBOSITY",
       "Log level of gRPC: NONE (the default), ERROR, INFO or DEBUG."},
      {"XDG_CACHE_HOME", "Directory of the default of --cache-dir."}};
  AddSecurityEnvironment(manual);
  manual.environment.push_back({"TRACEPARENT", "Default of --traceparent."});
  manual.examples = {
      {"quire archives", "List of the archives:"},
      {"quire ls web https://example.org/",
       "Documents of one site in the archive \"web\":"},
      {"quire ls docs manual/ --delimiter /", "One level of a directory tree:"},
      {"quire get web https://example.org/ -o page.html",
       "The newest version of a page:"},
      {"quire get web https://example.org/ --at 2022-06 --record",
       "Its newest WARC record of June 2022 or before:"},
      {"quire get web https://example.org/film.mp4 --range 1MiB:64KiB | xxd",
       "Some bytes of a document:"},
      {"quire range web 1GiB 64KiB | xxd | head", "Some bytes:"},
      {"quire batch web ids.txt --output-dir pages",
       "Many documents, each to a file:"},
      {"quire scan web | sha256sum", "Everything:"},
      {"quire ls web -0 | quire batch web -0 --output-dir pages",
       "Every document to a file:"},
      {"quire export web --warc web.warc.gz", "The crawl as it was:"},
      {"quire export web --tar - | tar -tv", "Names, sizes and times:"},
      {"quire export web --since UUID --warc new.warc.gz",
       "What was appended since:"},
      {"quire scan web -e stored -v > web.txt",
       "Everything over a slow line:"}};
  return manual;
}

}  // namespace

void DefineCommandLine(CLI::App& app, CliSettings& settings) {
  // Exactly one: what follows it is never taken for a subcommand.
  app.require_subcommand(1, 1);
  app.fallthrough();
  app.add_option("-s,--server", settings.server,
                 "Server: HOST:PORT, [IPV6]:PORT or unix:PATH")
      ->type_name("ADDRESS")
      ->envname("QUIRE_SERVER")
      ->capture_default_str();
  AddSecurityOptions(app, settings.security, settings.allow_readable_secrets);
  app.add_option("--timeout", settings.timeout,
                 "Longest wait for the server's next answer: seconds, or "
                 "500ms, 10s, 2m, 1h30m")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("-o,--output", settings.output,
                 "Output file. Default: -, standard output")
      ->type_name("FILE");
  app.add_flag("--json", settings.json, "JSON output: one object a line");
  CLI::Option* quiet =
      app.add_flag("-q,--quiet", settings.quiet, "No progress, no notes");
  app.add_option("--progress", settings.progress,
                 "Progress on standard error: auto, on a terminal; always, in "
                 "a log a line every five seconds; or never")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  app.add_flag("-v,--verbose", settings.verbose,
               "Bytes on the wire by encoding, at the end, on standard error")
      ->excludes(quiet);
  app.add_flag("--force", settings.force, "Binary output even to a terminal");
  app.add_option(
         "-e,--encoding", settings.encoding,
         "Encoding on the wire: identity; fsst, codes of the archive's "
         "symbol table; stored, compressed blocks of the archive; "
         "auto, stored for scans, else identity. Does not change the output")
      ->type_name("ENCODING")
      ->check(CLI::IsMember({"identity", "fsst", "stored", "auto"}))
      ->capture_default_str();
  app.add_option(
         "--cache-dir", settings.cache_directory,
         "Directory that keeps dictionaries and symbol tables between runs, or "
         "- for none. Default: quire in XDG_CACHE_HOME or ~/.cache")
      ->type_name("DIR");
  app.add_option("--traceparent", settings.trace_parent,
                 "W3C trace context, 00-TRACE-PARENT-FLAGS, sent with each "
                 "call. The server's access log names it")
      ->type_name("HEADER")
      ->envname("TRACEPARENT");
  DefineListings(app, settings);
  DefineGet(app, settings);
  DefineReads(app, settings);
  DefineBatch(app, settings);
  DefineExport(app, settings);
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
       {&settings.cache_directory, &settings.archive_uuid, &settings.since_uuid,
        &settings.delimiter, &settings.filter.from, &settings.filter.to}) {
    if (text->has_value()) {
      Unprotect(**text);
    }
  }
  for (std::vector<std::string>* texts :
       {&settings.ids, &settings.filter.record_types, &settings.filter.statuses,
        &settings.filter.media_types}) {
    for (std::string& text : *texts) {
      Unprotect(text);
    }
  }
}

absl::StatusOr<absl::Duration> ParseTimeout(const std::string& text) {
  absl::StatusOr<absl::Duration> timeout =
      ParseDurationText(text, {.min = kTimeoutMin});
  if (!timeout.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--timeout ", timeout.status().message()));
  }
  return timeout;
}

std::string DefaultCacheDirectory() {
  // Relative ones are to be ignored, says the XDG base directory specification.
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') {
    return absl::StrCat(cache, "/quire");
  }
  const char* home = std::getenv("HOME");
  return home != nullptr && home[0] == '/' ? absl::StrCat(home, "/.cache/quire")
                                           : "";
}

absl::StatusOr<ClientOptions> MakeClientOptions(const CliSettings& settings) {
  QUIRE_ASSIGN_OR_RETURN(const absl::Duration timeout,
                         ParseTimeout(settings.timeout));
  QUIRE_RETURN_IF_ERROR(
      CheckSecretFiles(settings.security, settings.allow_readable_secrets));
  ClientOptions options;
  options.address = settings.server;
  options.security = settings.security;
  options.deadline = timeout;
  options.stream_idle_max = timeout;
  QUIRE_ASSIGN_OR_RETURN(options.encoding,
                         ParseEncodingChoice(settings.encoding));
  if (!settings.trace_parent.empty()) {
    if (!IsTraceParent(settings.trace_parent)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--traceparent (TRACEPARENT) must be 00-TRACE-PARENT-FLAGS of 32, 16 "
          "and 2 lower-case hex digits, got ",
          QuotedText(settings.trace_parent)));
    }
    options.trace_parent = [header = settings.trace_parent] { return header; };
  }
  options.cache_directory =
      settings.cache_directory.value_or(DefaultCacheDirectory());
  if (options.cache_directory == "-") {
    options.cache_directory.clear();
  }
  return options;
}

}  // namespace quire
