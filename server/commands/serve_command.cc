// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/serve_command.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "deploy/manual/number_range.h"
#include "server/commands/config_file.h"
#include "server/commands/server_run.h"
#include "server/commands/subcommand_support.h"
#include "server/service/limits/available_memory.h"
#include "server/service/logging/server_log.h"
#include "server/service/server.h"
#include "server/storage/model/drive_presets.h"

namespace quire {
namespace {

// As the command line has them.
struct ServeArguments {
  std::vector<std::string> archives;
  std::string listen = ServerOptions().listen_address;
  TlsFiles tls;
  std::string access;
  std::string quota;
  std::string metrics;
  std::string memory;
  std::string engine = "auto";
  std::string cache_form = "identity";
  std::string range_decode = "auto";
  uint32_t decode_threads = 0;
  uint32_t device_depth = ServerOptions().device_depth;
  std::string direct_io = "off";
  std::string drive = "auto";
  std::string device_model;
  absl::Duration stall_timeout = absl::Seconds(60);
  DrainTimes drain;
  absl::Duration connection_age = ServerOptions().connection_age;
  absl::Duration connection_age_grace = ServerOptions().connection_age_grace;
  std::string log_format = "text";
  std::string log_level = "info";
  CallLogOptions call_log;
  std::string access_log_documents = "hashed";
  std::string config;
};

// Of a malformed command line: the log begins when it is known what form it
// has.
void SayUsage(absl::string_view message) {
  std::fprintf(stderr, "quired: %s\n", PrintableMessage(message).c_str());
}

void SayUsage(const std::vector<std::string>& messages) {
  for (const std::string& message : messages) {
    SayUsage(message);
  }
}

// `note` gets what "auto" was found to be, for the log.
absl::Status SetMemory(const std::string& text, ServerOptions& options,
                       std::string& note) {
  if (text == "auto") {
    QUIRE_ASSIGN_OR_RETURN(const AvailableMemory found, FindAvailableMemory());
    options.memory_bytes = found.size_bytes;
    note = absl::StrCat("--memory auto: ", FormatByteSize(found.size_bytes),
                        ", ", found.source);
  } else if (!text.empty()) {
    QUIRE_ASSIGN_OR_RETURN(options.memory_bytes, ParseByteSize(text));
  }
  return absl::OkStatus();
}

absl::StatusOr<ServerOptions> MakeOptions(const ServeArguments& arguments,
                                          std::string& note) {
  ServerOptions options;
  for (const std::string& text : arguments.archives) {
    QUIRE_ASSIGN_OR_RETURN(ArchiveArgument archive, ParseArchiveArgument(text));
    options.archives.push_back(std::move(archive));
  }
  if (options.archives.empty()) {
    return absl::InvalidArgumentError(
        "at least one archive must be given: quired serve ARCHIVE");
  }
  options.listen_address = arguments.listen;
  options.metrics_address = arguments.metrics;
  if (arguments.tls.certificate.empty() != arguments.tls.key.empty() ||
      (arguments.tls.certificate.empty() && !arguments.tls.client_ca.empty())) {
    return absl::InvalidArgumentError(
        "--tls-cert and --tls-key must be given together, and --tls-client-ca "
        "with both");
  }
  options.tls = arguments.tls;
  options.access_path = arguments.access;
  if (!arguments.quota.empty()) {
    absl::StatusOr<Quota> quota = ParseQuota(arguments.quota);
    if (!quota.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--quota: ", quota.status().message()));
    }
    options.default_quota = *quota;
  }
  if (const absl::Status status = SetMemory(arguments.memory, options, note);
      !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--memory: ", status.message()));
  }
  options.engine =
      arguments.engine == "io_uring" ? BlockStoreOptions::Engine::kIoUring
      : arguments.engine == "pread"  ? BlockStoreOptions::Engine::kPread
                                     : BlockStoreOptions::Engine::kAuto;
  options.cache_form =
      arguments.cache_form == "fsst" ? CacheForm::kFsst : CacheForm::kIdentity;
  options.range_decode = arguments.range_decode == "whole" ? RangeDecode::kWhole
                         : arguments.range_decode == "partition"
                             ? RangeDecode::kPartition
                             : RangeDecode::kAuto;
  options.decode_threads = arguments.decode_threads;
  options.device_depth = arguments.device_depth;
  options.direct_io = arguments.direct_io == "on"     ? DirectIo::kOn
                      : arguments.direct_io == "auto" ? DirectIo::kAuto
                                                      : DirectIo::kOff;
  if (arguments.drive != "auto") {
    options.drive = arguments.drive == "rotational" ? DriveKind::kRotational
                                                    : DriveKind::kSolidState;
  }
  options.device_model = arguments.device_model;
  options.stall_limit = arguments.stall_timeout;
  options.connection_age = arguments.connection_age;
  options.connection_age_grace = arguments.connection_age_grace;
  options.call_log = arguments.call_log;
  using Documents = CallLogOptions::Documents;
  options.call_log.documents =
      arguments.access_log_documents == "plain"  ? Documents::kPlain
      : arguments.access_log_documents == "none" ? Documents::kNone
                                                 : Documents::kHashed;
  return options;
}

// "wd-red (5 TB, ...), ..."
std::string DriveModelHelp() {
  return absl::StrJoin(
      DrivePresets(), ", ", [](std::string* out, const DrivePreset& preset) {
        absl::StrAppend(out, preset.name, " (", preset.summary, ")");
      });
}

std::vector<std::string> DriveModelNames() {
  std::vector<std::string> names;
  for (const DrivePreset& preset : DrivePresets()) {
    names.emplace_back(preset.name);
  }
  return names;
}

int Serve(const ServeArguments& arguments) {
  std::string note;
  absl::StatusOr<ServerOptions> options = MakeOptions(arguments, note);
  if (!options.ok()) {
    SayUsage(options.status().message());
    return kExitUsage;
  }
  ServerLog log(
      arguments.log_format == "json" ? LogFormat::kJson : LogFormat::kText,
      arguments.log_level == "error"     ? LogLevel::kError
      : arguments.log_level == "warning" ? LogLevel::kWarning
                                         : LogLevel::kInfo);
  options->say = [&log](LogLevel level, const std::string& message) {
    log.Say(level, message);
  };
  options->report_damage = [&log](const std::string& message) {
    log.Say(LogLevel::kError, message);
  };
  if (!note.empty()) {
    log.Say(LogLevel::kInfo, note);
  }
  PrepareServerProcess();
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Listen(*options);
  if (!server.ok()) {
    log.Say(LogLevel::kError, server.status().message());
    return server.status().code() == absl::StatusCode::kInvalidArgument
               ? kExitUsage
               : kExitFailed;
  }
  return RunServer(**server, arguments.drain, options->say);
}

void AddTlsOptions(CLI::App& subcommand, TlsFiles& files) {
  subcommand
      .add_option("--tls-cert", files.certificate,
                  "Encrypt calls (TLS 1.2 or 1.3) with this certificate: a PEM "
                  "file with those between it and the root after it. A new one "
                  "is taken up within 10 seconds, or on SIGHUP, without "
                  "dropping calls; one that does not fit the key, or has "
                  "expired, is not")
      ->type_name("FILE");
  subcommand
      .add_option("--tls-key", files.key,
                  "Its private key, a PEM file without a passphrase")
      ->type_name("FILE");
  subcommand
      .add_option("--tls-client-ca", files.client_ca,
                  "Take only clients with a certificate that these "
                  "certificates have signed, a PEM file; with --access also "
                  "those without, who need a token")
      ->type_name("FILE");
}

// How clients are moved to other servers, and how the server stops.
void AddDrainOptions(CLI::App& subcommand, ServeArguments& arguments) {
  AddTimeOption(subcommand, "--connection-age", arguments.connection_age,
                {.min = absl::Seconds(1), .max = absl::Hours(24)},
                "Have clients connect anew after this long, give or take a "
                "tenth, so that they find new replicas; calls in flight go "
                "on. Without it connections last")
      ->default_str("");
  AddTimeOption(subcommand, "--connection-age-grace",
                arguments.connection_age_grace,
                {.min = absl::Seconds(1), .max = absl::Hours(24)},
                "Cancel calls that still use such a connection after this "
                "long; without it they go on")
      ->default_str("");
  AddTimeOption(subcommand, "--drain-delay", arguments.drain.delay,
                {.max = absl::Hours(24)},
                "On SIGTERM, how long to go on answering all calls while "
                "health is NOT_SERVING and /readyz 503, so that load "
                "balancers send clients elsewhere");
  AddTimeOption(subcommand, "--drain-timeout", arguments.drain.timeout,
                {.max = absl::Hours(24)},
                "After that, how long calls in flight have to end; new ones "
                "are refused");
}

// What is served, where, and with how much memory and time.
void AddServiceOptions(CLI::App* subcommand, ServeArguments* arguments) {
  subcommand
      ->add_option("ARCHIVE,--archive", arguments->archives,
                   "Archives to serve, each as PATH or NAME=PATH; clients use "
                   "the name, which is by default the last part of the path "
                   "without .quire")
      ->type_name("[NAME=]PATH");
  subcommand
      ->add_option("--listen", arguments->listen,
                   "Address for gRPC; port 0 takes a free port. Without "
                   "--tls-cert calls are not encrypted: do not listen where "
                   "strangers can reach it")
      ->type_name("HOST:PORT|unix:PATH")
      ->capture_default_str();
  AddTlsOptions(*subcommand, arguments->tls);
  subcommand
      ->add_option("--access", arguments->access,
                   "File of who may do what, one line for each token or client "
                   "certificate, which quired token new prints; all others are "
                   "refused, and archives that a client has no right to do not "
                   "exist for it. Read again on SIGHUP")
      ->type_name("FILE");
  subcommand
      ->add_option(
          "--quota", arguments->quota,
          "What each client may do: calls=N and bytes=SIZE a second "
          "(decoded), streams=N at a time, separated by commas. A "
          "client is an identity of --access, whose line there may say "
          "otherwise; without --access it is an address, or a user of "
          "a unix socket")
      ->type_name("QUOTA");
  subcommand
      ->add_option("--admin,--metrics", arguments->metrics,
                   "Address for Prometheus, at /metrics, and for probes: "
                   "/healthz answers while the process does, /readyz is 200 "
                   "when all archives are open and the server does not drain, "
                   "else 503. Plain HTTP without credentials: for loopback or "
                   "a private network")
      ->type_name("HOST:PORT");
  subcommand
      ->add_option("--memory", arguments->memory,
                   "Limit of the server's memory: dictionaries, indexes, cache "
                   "and answers in flight; auto takes 7/8 of the limit of the "
                   "cgroup, or else half of what is available. Without it: "
                   "what the archives need and 512MiB")
      ->type_name("SIZE|auto");
  AddTimeOption(*subcommand, "--stall-timeout", arguments->stall_timeout,
                {.min = absl::Milliseconds(100), .max = absl::Hours(24)},
                "Cancel a call whose client has accepted nothing of its "
                "answer for this long");
  AddDrainOptions(*subcommand, *arguments);
}

void AddLogOptions(CLI::App& subcommand, ServeArguments& arguments) {
  subcommand
      .add_option("--log-format", arguments.log_format,
                  "Messages on standard error: text, or json, an object a "
                  "line")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  subcommand
      .add_option("--log-level", arguments.log_level,
                  "The least of the messages that are logged: info, warning or "
                  "error")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"info", "warning", "error"}))
      ->capture_default_str();
  subcommand
      .add_option("--access-log", arguments.call_log.path,
                  "Append a line of JSON for each call to this file, or to "
                  "standard output (-): time, client, method, archive, "
                  "document, bytes, code, durations, trace. Opened anew on "
                  "SIGHUP; lines that the disk is too slow for are dropped and "
                  "counted")
      ->type_name("FILE");
  subcommand
      .add_option("--access-log-documents", arguments.access_log_documents,
                  "Ids of documents in the access log: plain, hashed (with a "
                  "key that is drawn at the start: equal ids look equal, and "
                  "cannot be guessed), or none")
      ->type_name("FORM")
      ->check(CLI::IsMember({"plain", "hashed", "none"}))
      ->capture_default_str();
  AddTimeOption(subcommand, "--slow-call-log", arguments.call_log.slow_call_min,
                {.min = absl::Milliseconds(1), .max = absl::Hours(24)},
                "Log calls with one answer that take this long, sending "
                "included, as warnings")
      ->default_str("");
}

// How blocks are read, decoded and cached.
void AddStorageOptions(CLI::App* subcommand, ServeArguments* arguments) {
  subcommand
      ->add_option("--engine", arguments->engine,
                   "How blocks are read: io_uring, pread, or auto, which takes "
                   "io_uring where it works")
      ->type_name("ENGINE")
      ->check(CLI::IsMember({"auto", "io_uring", "pread"}))
      ->capture_default_str();
  subcommand
      ->add_option(
          "--cache-form", arguments->cache_form,
          "How the cache holds blocks: identity, as text, or fsst, in "
          "codes of the archive's symbol table where they are smaller: "
          "more blocks fit, each costs more to put in")
      ->type_name("FORM")
      ->check(CLI::IsMember({"identity", "fsst"}))
      ->capture_default_str();
  subcommand
      ->add_option(
          "--range-decode", arguments->range_decode,
          "What is decoded of a block in partitions (codecs -pex): whole; "
          "partition, what a read touches; or auto, what a read touches, but "
          "whole where reads follow one another through a block and each "
          "takes the drive long")
      ->type_name("METHOD")
      ->check(CLI::IsMember({"auto", "whole", "partition"}))
      ->capture_default_str();
  subcommand
      ->add_option("--decode-threads", arguments->decode_threads,
                   "Threads that decode blocks; 0: one for each core")
      ->type_name("N")
      ->check(CountInRange(0, 1024))
      ->capture_default_str();
  subcommand
      ->add_option("--device-depth", arguments->device_depth,
                   "Reads in flight at each drive")
      ->type_name("N")
      ->check(CountInRange(1, 4096))
      ->capture_default_str();
  subcommand
      ->add_option("--direct-io", arguments->direct_io,
                   "Read blocks past the kernel's page cache (O_DIRECT), "
                   "leaving memory to others: on, auto, which does it for "
                   "archives whose file system can, or off, which is faster "
                   "where the machine has memory to spare for that cache")
      ->type_name("MODE")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
  subcommand
      ->add_option("--drive", arguments->drive,
                   "What the archives lie on: rotational (a hard disk: reads "
                   "in order of address, batches wait while interactive reads "
                   "are under way), solid-state, or auto, which asks the "
                   "kernel about each drive; it knows nothing about virtio "
                   "disks, which count as solid-state")
      ->type_name("KIND")
      ->check(CLI::IsMember({"auto", "rotational", "solid-state"}))
      ->capture_default_str();
  subcommand
      ->add_option("--device-model", arguments->device_model,
                   "For experiments: reads take as long as on this drive: " +
                       DriveModelHelp())
      ->type_name("DRIVE")
      ->check(CLI::IsMember(DriveModelNames()));
}

void AddAllOptions(CLI::App* subcommand, ServeArguments* arguments) {
  AddServiceOptions(subcommand, arguments);
  AddLogOptions(*subcommand, *arguments);
  AddStorageOptions(subcommand, arguments);
  subcommand
      ->add_option("--config", arguments->config,
                   "TOML file with any of these options by their long names, "
                   "such as memory = \"4GiB\", or in tables: [tls] has cert "
                   "and key, [archives] has NAME = \"PATH\". Environment "
                   "variables such as QUIRED_MEMORY take precedence over it, "
                   "the command line over both; quired check-config checks it")
      ->type_name("FILE");
}

// Exit code.
int CheckConfig(const std::string& path) {
  CLI::App subcommand("", "serve");
  ServeArguments arguments;
  AddAllOptions(&subcommand, &arguments);
  std::vector<std::string> faults =
      ApplyConfigFile(path, subcommand, PathChecks::kAll);
  if (faults.empty()) {
    std::string note;
    if (const auto options = MakeOptions(arguments, note); !options.ok()) {
      faults.push_back(absl::StrCat(path, ": ", options.status().message()));
    }
  }
  SayUsage(faults);
  if (!faults.empty()) {
    return kExitUsage;
  }
  std::printf("%s: good\n", PrintableText(path).c_str());
  return kExitGood;
}

}  // namespace

void AddCheckConfigCommand(CLI::App& app, int& exit_code) {
  CLI::App* subcommand = app.add_subcommand(
      "check-config",
      "Check a configuration file of quired serve: unknown tables and keys, "
      "empty and malformed values and paths that are not there are named with "
      "their line; nothing is served");
  auto path = std::make_shared<std::string>();
  subcommand->add_option("FILE", *path, "The file for quired serve --config")
      ->type_name("")
      ->required();
  subcommand->callback([path, &exit_code] { exit_code = CheckConfig(*path); });
}

void AddServeCommand(CLI::App& app, int& exit_code) {
  CLI::App* subcommand =
      app.add_subcommand("serve", "Serve archives over gRPC until SIGTERM");
  auto arguments = std::make_shared<ServeArguments>();
  AddAllOptions(subcommand, arguments.get());
  subcommand->footer(
      "Signals: SIGTERM and SIGINT drain and stop, a second one at once; "
      "SIGHUP "
      "reopens the archives "
      "and\nswitches to changed ones, and to a changed certificate and "
      "rules of\naccess, without dropping calls; blocks are checked when they "
      "are read, or by quired "
      "verify.\n"
      "A TIME is a number of seconds, or has units: 500ms, 10s, 2m, "
      "1h30m.\n\n"
      "Example:\n"
      "  quired serve docs.quire --listen 127.0.0.1:7420 "
      "--metrics 127.0.0.1:7421 --memory 1GiB\n");
  subcommand->callback([subcommand, arguments, &exit_code] {
    std::vector<std::string> faults = ApplyEnvironment(*subcommand);
    if (faults.empty() && !arguments->config.empty()) {
      faults =
          ApplyConfigFile(arguments->config, *subcommand, PathChecks::kNone);
    }
    if (!faults.empty()) {
      SayUsage(faults);
      exit_code = kExitUsage;
      return;
    }
    exit_code = Serve(*arguments);
  });
}

}  // namespace quire
