// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/serve_arguments.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/number_range.h"
#include "codecs/base/status_macros.h"
#include "server/archive/format/archive_format.h"
#include "server/commands/subcommand_support.h"
#include "server/service/catalog/archives_list.h"
#include "server/service/catalog/remote_archives.h"
#include "server/service/limits/available_memory.h"
#include "server/storage/model/drive_presets.h"

namespace quire {
namespace {

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

std::vector<std::string> DriveModelNames() {
  std::vector<std::string> names;
  for (const DrivePreset& preset : DrivePresets()) {
    names.emplace_back(preset.name);
  }
  return names;
}

// Adds options for archives.
void AddArchiveOptions(CLI::App& subcommand, ServeArguments& arguments) {
  subcommand
      .add_option("ARCHIVE", arguments.archives,
                  "Directory, s3://BUCKET/PREFIX or https://HOST/PATH")
      ->type_name("[NAME=]PATH");
  // The key for it.
  subcommand.add_option("--archive", arguments.archives)
      ->type_name("[NAME=]PATH")
      ->group("");
  subcommand
      .add_option("--archives-dir", arguments.archives_directory,
                  "Directory whose archives are all served")
      ->type_name("DIR");
  subcommand
      .add_option("--archives-list", arguments.archives_list,
                  "List of archives, each of which is opened on first use")
      ->type_name("FILE");
  subcommand.add_flag(
      "--allow-fewer-archives", arguments.allow_fewer_archives,
      "Accept a missing, empty or other --archives-dir on SIGHUP");
  subcommand.add_flag("--skip-broken", arguments.skip_broken,
                      "Serve the other archives if some cannot be opened");
}

void AddTlsOptions(CLI::App& subcommand, TlsFiles& files) {
  subcommand
      .add_option("--tls-cert", files.certificate,
                  "Certificate for TLS and its intermediate ones, in PEM")
      ->type_name("FILE");
  subcommand
      .add_option("--tls-key", files.key,
                  "Private key of --tls-cert, in PEM, without a passphrase")
      ->type_name("FILE");
  subcommand.add_flag(
      "--allow-readable-secrets", files.allow_readable_secrets,
      "Accept a private key that all users of the machine can read");
  subcommand
      .add_option("--tls-client-ca", files.client_ca,
                  "Certificates that sign those of permitted clients, in PEM")
      ->type_name("FILE");
}

// Adds options for moving clients to other servers, and for stopping.
void AddDrainOptions(CLI::App& subcommand, ServeArguments& arguments) {
  AddTimeOption(subcommand, "--connection-age", arguments.connection_age,
                {.min = absl::Seconds(1), .max = absl::Hours(24)},
                "Connection age at which clients reconnect; default: never")
      ->default_str("");
  AddTimeOption(subcommand, "--drain-delay", arguments.drain.delay,
                {.max = absl::Hours(24)},
                "Time from SIGTERM until new calls are refused");
  AddTimeOption(subcommand, "--drain-timeout", arguments.drain.timeout,
                {.max = absl::Hours(24)},
                "Further time for calls in flight to end");
}

// Adds options for addresses, clients, memory and times.
void AddServiceOptions(CLI::App& subcommand, ServeArguments& arguments) {
  subcommand
      .add_option("--listen", arguments.listen,
                  "Address for gRPC; port 0 selects a free port")
      ->type_name("HOST:PORT|unix:PATH")
      ->capture_default_str();
  subcommand
      .add_option("--private", arguments.private_directory,
                  "Serve unix:DIR/socket while a process has DIR/clients open")
      ->type_name("DIR");
  subcommand.add_flag("--listen-when-open", arguments.listen_when_open,
                      "Refuse connections until all archives are open");
  AddTlsOptions(subcommand, arguments.tls);
  subcommand
      .add_option("--access", arguments.access,
                  "Access rules, as printed by quired token new")
      ->type_name("FILE");
  subcommand
      .add_option("--withdrawn", arguments.withdrawn,
                  "Rules for documents to withhold from all clients")
      ->type_name("FILE");
  subcommand
      .add_option("--quota", arguments.quota,
                  "Limits of a client: calls=N,bytes=SIZE,streams=N; a line of "
                  "--access replaces each that it sets")
      ->type_name("QUOTA");
  subcommand
      .add_option("--admin,--metrics", arguments.metrics,
                  "HTTP address of /metrics, /healthz and /readyz")
      ->type_name("HOST:PORT");
  subcommand
      .add_option("--memory", arguments.memory,
                  "Memory limit; default: the need of the archives and 512MiB")
      ->type_name("SIZE|auto");
  AddTimeOption(subcommand, "--stall-timeout", arguments.stall_timeout,
                {.min = absl::Milliseconds(100), .max = absl::Hours(24)},
                "Time after which calls of a stalled client are cancelled");
  AddTimeOption(subcommand, "--reload-interval", arguments.reload_interval,
                {.min = absl::Milliseconds(100), .max = absl::Hours(24)},
                "Interval of checks for changed archives; default: at SIGHUP")
      ->default_str("");
  AddDrainOptions(subcommand, arguments);
  AddTimeOption(subcommand, "--scrub-interval", arguments.scrub_interval,
                // The time of the last pass is kept in seconds.
                {.min = absl::Seconds(1), .max = absl::Hours(24) * 366},
                "Time to check all stored blocks in; default: no check")
      ->default_str("");
  AddByteSizeOption(subcommand, "--scrub-rate", arguments.scrub_rate_bytes,
                    "Limit on the reads of --scrub-interval, per second");
  subcommand
      .add_option("--state-dir", arguments.state_directory,
                  "Directory for the progress of --scrub-interval")
      ->type_name("DIR");
}

void AddLogOptions(CLI::App& subcommand, ServeArguments& arguments) {
  subcommand
      .add_option("--log-format", arguments.log_format,
                  "Form of messages on standard error")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  subcommand
      .add_option("--log-level", arguments.log_level,
                  "Minimum level of messages")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"info", "warning", "error"}))
      ->capture_default_str();
  subcommand
      .add_option("--access-log", arguments.call_log.path,
                  "Log of calls, a JSON object per line; -: standard output")
      ->type_name("FILE");
  subcommand
      .add_option("--access-log-documents", arguments.access_log_documents,
                  "Form of document ids in --access-log")
      ->type_name("FORM")
      ->check(CLI::IsMember({"plain", "hashed", "none"}))
      ->capture_default_str();
  subcommand
      .add_option("--access-log-key", arguments.call_log.hash_key_path,
                  "Key of hashed ids, 16 bytes or more; default: random")
      ->type_name("FILE");
}

// Adds options for reading blocks.
void AddStorageOptions(CLI::App& subcommand, ServeArguments& arguments) {
  subcommand
      .add_option("--direct-io", arguments.direct_io,
                  "Reads past the kernel's page cache (O_DIRECT)")
      ->type_name("MODE")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
  subcommand
      .add_option("--drive", arguments.drive,
                  "Kind of drive; auto: the kernel's answer for each")
      ->type_name("KIND")
      ->check(CLI::IsMember({"auto", "rotational", "solid-state"}))
      ->capture_default_str();
}

// Sets the paths of archives in object stores.
absl::Status SetStore(const ServeArguments& arguments, ServerOptions& options) {
  const bool has_remote = std::any_of(
      options.archives.begin(), options.archives.end(),
      [](const ArchiveArgument& archive) { return !archive.url.empty(); });
  if (arguments.store.cache.empty()) {
    return has_remote ? absl::InvalidArgumentError(
                            "archives in an object store need --store-cache "
                            "DIR:SIZE for their local copies")
                      : absl::OkStatus();
  }
  QUIRE_ASSIGN_OR_RETURN(RemoteStoreOptions store,
                         MakeStoreOptions(arguments.store));
  store.stale_max = arguments.store_stale_max;
  std::set<std::string> paths;
  for (ArchiveArgument& archive : options.archives) {
    if (archive.url.empty()) {
      continue;
    }
    QUIRE_RETURN_IF_ERROR(RemoteArchives::SetPath(store, archive));
    if (!paths.insert(archive.path).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          archive.url, " is given twice as ", archive.name, "; serve it once"));
    }
  }
  options.store = std::move(store);
  return absl::OkStatus();
}

// Refuses options that would silently do nothing. Not CLI11's needs(), which
// would not see values from the environment and a file.
absl::Status CheckHaveEffect(const ServeArguments& arguments) {
  struct Dependence {
    bool is_given;
    bool has_effect;
    absl::string_view option;
    absl::string_view needed;
  };

  for (const Dependence& each : {
           Dependence{!arguments.state_directory.empty(),
                      arguments.scrub_interval > absl::ZeroDuration(),
                      "--state-dir", "--scrub-interval"},
           Dependence{!arguments.call_log.hash_key_path.empty(),
                      !arguments.call_log.path.empty(), "--access-log-key",
                      "--access-log"},
       }) {
    if (each.is_given && !each.has_effect) {
      return absl::InvalidArgumentError(absl::StrCat(
          each.option, " has no effect without ", each.needed, "; give both"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

void AddServeOptions(CLI::App& subcommand, ServeArguments& arguments) {
  AddArchiveOptions(subcommand, arguments);
  AddServiceOptions(subcommand, arguments);
  AddLogOptions(subcommand, arguments);
  AddStorageOptions(subcommand, arguments);
  AddStoreOptions(subcommand, arguments.store,
                  "Directory for copies from object stores, and its limit");
  AddTimeOption(subcommand, "--store-stale-max", arguments.store_stale_max,
                {.min = absl::Seconds(1), .max = absl::Hours(24) * 366},
                "Age of copies opened while the store is silent; default: none")
      ->default_str("");
  subcommand
      .add_option("--config", arguments.config,
                  "TOML file of these options by their long names")
      ->type_name("FILE");
  AddRemovedOptions(subcommand, [&arguments](const std::string& warning) {
    arguments.warnings.push_back(warning);
  });
}

void AddServeKeys(CLI::App& subcommand, ServeArguments& arguments) {
  subcommand.add_option("--experiment-engine", arguments.engine)
      ->check(CLI::IsMember({"auto", "io_uring", "pread"}));
  subcommand.add_option("--experiment-device-depth", arguments.device_depth)
      ->check(CountInRange(1, 4096));
  subcommand.add_option("--experiment-device-model", arguments.device_model)
      ->check(CLI::IsMember(DriveModelNames()));
  if (const CLI::Option& given = *subcommand.get_option("ARCHIVE");
      given.count() > 0) {
    CLI::Option& key = *subcommand.get_option("--archive");
    key.add_result(given.results());
    key.run_callback();
  }
}

absl::StatusOr<DirectoryArchives> FindDirectoryArchives(
    const ServeArguments& arguments) {
  if (arguments.archives_directory.empty()) {
    return DirectoryArchives{};
  }
  absl::StatusOr<DirectoryArchives> found =
      FindArchives(arguments.archives_directory);
  if (!found.ok()) {
    return absl::Status(
        found.status().code(),
        absl::StrCat("--archives-dir: ", found.status().message()));
  }
  const std::filesystem::path manifest =
      std::filesystem::path(arguments.archives_directory) / kManifestFileName;
  std::error_code error;
  if (found->archives.empty() && std::filesystem::exists(manifest, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--archives-dir: ", arguments.archives_directory,
                     ": is itself an archive; serve it by name, quired serve ",
                     arguments.archives_directory));
  }
  return found;
}

absl::StatusOr<ServerOptions> MakeServerOptions(
    const ServeArguments& arguments, const DirectoryArchives& in_directory,
    std::string& note) {
  ServerOptions options;
  for (const std::string& text : arguments.archives) {
    QUIRE_ASSIGN_OR_RETURN(ArchiveArgument archive, ParseArchiveArgument(text));
    options.archives.push_back(std::move(archive));
  }
  options.archives.insert(options.archives.end(), in_directory.archives.begin(),
                          in_directory.archives.end());
  options.archives_directory = arguments.archives_directory;
  options.archives_list = arguments.archives_list;
  if (!options.archives_list.empty()) {
    QUIRE_ASSIGN_OR_RETURN(std::vector<ArchiveArgument> listed,
                           ReadArchivesList(options.archives_list));
    std::ranges::move(listed, std::back_inserter(options.archives));
  }
  if (options.archives.empty() && options.archives_directory.empty() &&
      options.archives_list.empty()) {
    return absl::InvalidArgumentError(
        "at least one archive must be given: quired serve ARCHIVE, "
        "--archives-dir or --archives-list");
  }
  QUIRE_RETURN_IF_ERROR(CheckNamesDiffer(options.archives));
  QUIRE_RETURN_IF_ERROR(CheckHaveEffect(arguments));
  QUIRE_RETURN_IF_ERROR(SetStore(arguments, options));
  options.skip_broken = arguments.skip_broken;
  if (!arguments.private_directory.empty() &&
      arguments.listen != options.listen_address) {
    return absl::InvalidArgumentError(
        "--private DIR listens on unix:DIR/socket; give it or --listen");
  }
  options.listen_address = arguments.listen;
  options.listen_when_open = arguments.listen_when_open;
  options.metrics_address = arguments.metrics;
  if (arguments.tls.certificate.empty() != arguments.tls.key.empty() ||
      (arguments.tls.certificate.empty() && !arguments.tls.client_ca.empty())) {
    return absl::InvalidArgumentError(
        "--tls-cert and --tls-key must be given together, and --tls-client-ca "
        "with both");
  }
  options.tls = arguments.tls;
  options.access_path = arguments.access;
  options.withdrawn_path = arguments.withdrawn;
  if (arguments.scrub_rate_bytes == 0) {
    return absl::InvalidArgumentError(
        "--scrub-rate must be at least 1 byte, got 0");
  }
  options.scrub = {.interval = arguments.scrub_interval,
                   .state_directory = arguments.state_directory,
                   .rate_bytes_per_second = arguments.scrub_rate_bytes};
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
  options.call_log = arguments.call_log;
  using Documents = CallLogOptions::Documents;
  options.call_log.documents =
      arguments.access_log_documents == "plain"  ? Documents::kPlain
      : arguments.access_log_documents == "none" ? Documents::kNone
                                                 : Documents::kHashed;
  return options;
}

LogLevel LogLevelOf(const ServeArguments& arguments) {
  return arguments.log_level == "error"     ? LogLevel::kError
         : arguments.log_level == "warning" ? LogLevel::kWarning
                                            : LogLevel::kInfo;
}

}  // namespace quire
