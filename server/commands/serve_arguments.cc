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
#include "absl/strings/str_join.h"

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

// Returns "wd-red (5 TB, ...), ...".
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

void AddTlsOptions(CLI::App& subcommand, TlsFiles& files) {
  subcommand
      .add_option(
          "--tls-cert", files.certificate,
          "Encrypt calls (TLS 1.2 or 1.3) with this certificate: a PEM file, "
          "followed by intermediate certificates. A renewed file is applied "
          "within 10 seconds, or on SIGHUP, without dropping calls, unless it "
          "has expired or does not match the key")
      ->type_name("FILE");
  subcommand
      .add_option("--tls-key", files.key,
                  "Its private key, a PEM file without a passphrase")
      ->type_name("FILE");
  subcommand.add_flag(
      "--allow-readable-secrets", files.allow_readable_secrets,
      "Accept a private key that all users of the machine can read");
  subcommand
      .add_option("--tls-client-ca", files.client_ca,
                  "Accept only clients with a certificate signed by these, a "
                  "PEM file; with --access also clients with a token")
      ->type_name("FILE");
}

// Adds options for moving clients to other servers, and for stopping.
void AddDrainOptions(CLI::App& subcommand, ServeArguments& arguments) {
  AddTimeOption(
      subcommand, "--connection-age", arguments.connection_age,
      {.min = absl::Seconds(1), .max = absl::Hours(24)},
      "Make clients reconnect after this time, varied by a tenth, so that they "
      "find new replicas; calls in flight continue. Default: never")
      ->default_str("");
  AddTimeOption(subcommand, "--connection-age-grace",
                arguments.connection_age_grace,
                {.min = absl::Seconds(1), .max = absl::Hours(24)},
                "Cancel calls that still use such a connection after this "
                "further time. Default: never")
      ->default_str("");
  AddTimeOption(subcommand, "--drain-delay", arguments.drain.delay,
                {.max = absl::Hours(24)},
                "On SIGTERM, answer all calls for this time while health is "
                "NOT_SERVING and /readyz 503, so that load "
                "balancers send clients elsewhere");
  AddTimeOption(
      subcommand, "--drain-timeout", arguments.drain.timeout,
      {.max = absl::Hours(24)},
      "Then let calls in flight end for this time; new ones are refused");
}

// Adds options for archives.
void AddArchiveOptions(CLI::App* subcommand, ServeArguments* arguments) {
  subcommand
      ->add_option("ARCHIVE,--archive", arguments->archives,
                   "Archives to serve, each as PATH or NAME=PATH; clients use "
                   "the name, which is by default the last part of the path "
                   "without .quire. A path may be s3://BUCKET/PREFIX or "
                   "https://HOST/PATH; see --store-cache")
      ->type_name("[NAME=]PATH");
  subcommand
      ->add_option(
          "--archives-dir", arguments->archives_directory,
          "Serve every archive in this directory by its name; on SIGHUP add "
          "new archives and remove missing ones. Write archives elsewhere and "
          "move them there, or build them in place")
      ->type_name("DIR");
  subcommand
      ->add_option(
          "--archives-list", arguments->archives_list,
          "Serve the archives of this file, one on each line as for --archive; "
          "paths are relative to the file. Each is opened on first use, while "
          "calls for it are told to retry, and closed when others need its "
          "memory: all need not fit into --memory at a time. Read again on "
          "SIGHUP")
      ->type_name("FILE");
  subcommand->add_flag(
      "--allow-fewer-archives", arguments->allow_fewer_archives,
      "On SIGHUP, accept that the directory of --archives-dir is missing, "
      "empty or on another device; otherwise that is an error, as after an "
      "unmount, and its archives stay open");
  subcommand->add_flag(
      "--skip-broken", arguments->skip_broken,
      "Skip archives that cannot be opened: they are logged, counted (metric "
      "quire_archives, state broken) and retried on SIGHUP. Serve archives "
      "with damaged document ids or attributes without these. Otherwise the "
      "server does not start");
}

// Adds options for addresses, clients, memory and times.
void AddServiceOptions(CLI::App* subcommand, ServeArguments* arguments) {
  subcommand
      ->add_option(
          "--listen", arguments->listen,
          "Address for gRPC; port 0 selects a free port. Without --tls-cert "
          "calls are not encrypted: listen only on trusted networks")
      ->type_name("HOST:PORT|unix:PATH")
      ->capture_default_str();
  AddTlsOptions(*subcommand, arguments->tls);
  subcommand
      ->add_option("--access", arguments->access,
                   "File of access rules, one line for each token or client "
                   "certificate, as printed by quired token new. Other clients "
                   "are refused, and a client gets NOT_FOUND for archives it "
                   "has no rights to. Read again on SIGHUP")
      ->type_name("FILE");
  subcommand
      ->add_option(
          "--withdrawn", arguments->withdrawn,
          "File of withdrawn documents, one rule on each line: "
          "ARCHIVES id|prefix VALUE exclude|block. Documents are as if "
          "absent, or PERMISSION_DENIED; ranges and scans have zeros "
          "in their place. Read again on SIGHUP")
      ->type_name("FILE");
  subcommand
      ->add_option(
          "--quota", arguments->quota,
          "Limits of each client: calls=N and bytes=SIZE per second "
          "(decoded), streams=N at a time, separated by commas. A "
          "client is an identity of --access, whose line there may set "
          "other limits; without --access it is an address, or a user "
          "of a unix socket")
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
                   "cgroup, or else half of what is available. Default: the "
                   "archives' need and 512MiB")
      ->type_name("SIZE|auto");
  AddTimeOption(*subcommand, "--stall-timeout", arguments->stall_timeout,
                {.min = absl::Milliseconds(100), .max = absl::Hours(24)},
                "Cancel a call whose client has accepted nothing of its "
                "answer for this long");
  AddTimeOption(
      *subcommand, "--reload-interval", arguments->reload_interval,
      {.min = absl::Milliseconds(100), .max = absl::Hours(24)},
      "Look at the MANIFEST of each archive this often, and switch to "
      "archives that have grown or were replaced, as SIGHUP does. "
      "Default: only at SIGHUP")
      ->default_str("");
  AddDrainOptions(*subcommand, *arguments);
  AddTimeOption(*subcommand, "--scrub-interval", arguments->scrub_interval,
                // The time of the last pass is kept in seconds.
                {.min = absl::Seconds(1), .max = absl::Hours(24) * 366},
                "Read and check every stored block once in this time, past all "
                "caches and after the reads of clients, like 14d. Default: "
                "never")
      ->default_str("");
  AddByteSizeOption(*subcommand, "--scrub-rate", arguments->scrub_rate_bytes,
                    "Bytes of files that --scrub-interval reads per second");
  subcommand
      ->add_option("--state-dir", arguments->state_directory,
                   "Directory that keeps the progress of --scrub-interval over "
                   "restarts")
      ->type_name("DIR");
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
                  "Minimum log level: info, warning or error")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"info", "warning", "error"}))
      ->capture_default_str();
  subcommand
      .add_option("--access-log", arguments.call_log.path,
                  "Append a line of JSON for each call to this file, or to "
                  "standard output (-): time, client, method, archive, "
                  "document, bytes, code, durations, trace. Reopened on "
                  "SIGHUP; if the disk is too slow, lines are dropped and "
                  "counted")
      ->type_name("FILE");
  subcommand
      .add_option("--access-log-documents", arguments.access_log_documents,
                  "Ids of documents in the access log: plain, hashed (with a "
                  "key: equal ids look equal, and cannot be guessed), or none")
      ->type_name("FORM")
      ->check(CLI::IsMember({"plain", "hashed", "none"}))
      ->capture_default_str();
  subcommand
      .add_option("--access-log-key", arguments.call_log.hash_key_path,
                  "Hash ids of documents with the key in this file, of 16 "
                  "bytes or more, so that replicas agree; without it a key is "
                  "generated at the start")
      ->type_name("FILE");
  AddTimeOption(subcommand, "--slow-call-log", arguments.call_log.slow_call_min,
                {.min = absl::Milliseconds(1), .max = absl::Hours(24)},
                "Log calls with one answer that take this long, sending "
                "included, as warnings")
      ->default_str("");
}

// Adds options for reading, decoding and caching blocks.
void AddStorageOptions(CLI::App* subcommand, ServeArguments* arguments) {
  subcommand
      ->add_option("--engine", arguments->engine,
                   "Interface for reading blocks: io_uring, pread, or auto, "
                   "io_uring if it works")
      ->type_name("ENGINE")
      ->check(CLI::IsMember({"auto", "io_uring", "pread"}))
      ->capture_default_str();
  subcommand
      ->add_option(
          "--range-decode", arguments->range_decode,
          "Decoded part of a block in partitions: whole; partition, only the "
          "partitions that a read touches; or auto, partitions, but whole "
          "blocks for sequential reads from a slow drive")
      ->type_name("METHOD")
      ->check(CLI::IsMember({"auto", "whole", "partition"}))
      ->capture_default_str();
  subcommand
      ->add_option("--decode-threads", arguments->decode_threads,
                   "Decode threads; 0: one per core")
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
                   "Bypass the kernel's page cache (O_DIRECT): on; auto, if "
                   "the archive's file system supports it; or off, faster if "
                   "the machine has free memory for that cache")
      ->type_name("MODE")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
  subcommand
      ->add_option("--drive", arguments->drive,
                   "Kind of drive: rotational (a hard disk: reads in order of "
                   "address, batches wait while interactive reads are in "
                   "flight), solid-state, or auto, which asks the kernel about "
                   "each drive. Virtio disks count as solid-state")
      ->type_name("KIND")
      ->check(CLI::IsMember({"auto", "rotational", "solid-state"}))
      ->capture_default_str();
  subcommand
      ->add_option(
          "--device-model", arguments->device_model,
          "For experiments: slow reads down to this drive: " + DriveModelHelp())
      ->type_name("DRIVE")
      ->check(CLI::IsMember(DriveModelNames()));
}

// Adds options for archives in object stores.
void AddStoreOptions(CLI::App& subcommand, ServeArguments& arguments) {
  subcommand
      .add_option("--store-cache", arguments.store_cache,
                  "Directory for local copies of archives in object stores, "
                  "and their limit; needed for such archives. Indexes stay "
                  "there, blocks as they are read; a restart finds them again. "
                  "One directory for each server, on ext4, xfs, btrfs or tmpfs")
      ->type_name("DIR:SIZE");
  subcommand
      .add_option("--store-endpoint", arguments.store_endpoint,
                  "URL of the store of s3:// archives, with the bucket in the "
                  "path of requests. Default: Amazon's. Credentials are "
                  "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the profile "
                  "AWS_PROFILE of ~/.aws/credentials, read again on SIGHUP; "
                  "without any, requests are not signed")
      ->type_name("URL");
  subcommand
      .add_option("--store-ca", arguments.store_ca,
                  "Certificates that sign those of object stores, a PEM file, "
                  "in place of the system's. Default: AWS_CA_BUNDLE, or the "
                  "system's")
      ->type_name("FILE");
  subcommand
      .add_option("--store-region", arguments.store_region,
                  "Region of s3:// archives. Default: AWS_REGION, "
                  "AWS_DEFAULT_REGION or us-east-1")
      ->type_name("REGION");
  AddByteSizeOption(subcommand, "--store-chunk", arguments.store_chunk_bytes,
                    "Least size of a request to an object store, a multiple "
                    "of 4KiB, and unit of --store-cache");
  subcommand
      .add_option("--store-requests", arguments.store_requests,
                  "Requests in flight to object stores")
      ->type_name("N")
      ->check(CountInRange(1, kStoreRequestsMax))
      ->capture_default_str();
}

// Returns the first of the environment's regions.
std::string DefaultRegion() {
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
    // The environment does not change.
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    if (value != nullptr && *value != '\0') {
      return value;
    }
  }
  return RemoteStoreOptions().region;
}

// Sets the paths of archives in object stores.
absl::Status SetStore(const ServeArguments& arguments, ServerOptions& options) {
  const bool has_remote = std::any_of(
      options.archives.begin(), options.archives.end(),
      [](const ArchiveArgument& archive) { return !archive.url.empty(); });
  if (arguments.store_cache.empty()) {
    return has_remote ? absl::InvalidArgumentError(
                            "archives in an object store need --store-cache "
                            "DIR:SIZE for their local copies")
                      : absl::OkStatus();
  }
  const size_t colon = arguments.store_cache.rfind(':');
  if (colon == std::string::npos || colon == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--store-cache must be DIR:SIZE, such as "
                     "/var/cache/quire:100GiB, got \"",
                     arguments.store_cache, "\""));
  }
  RemoteStoreOptions store;
  store.cache_directory = arguments.store_cache.substr(0, colon);
  const absl::StatusOr<uint64_t> size_bytes =
      ParseByteSize(arguments.store_cache.substr(colon + 1));
  if (!size_bytes.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--store-cache DIR:SIZE: ", size_bytes.status().message()));
  }
  store.cache_size_bytes = *size_bytes;
  store.endpoint = arguments.store_endpoint;
  store.region =
      arguments.store_region.empty() ? DefaultRegion() : arguments.store_region;
  store.chunk_size_bytes = static_cast<uint32_t>(
      std::min<uint64_t>(arguments.store_chunk_bytes, UINT32_MAX));
  store.requests_max = arguments.store_requests;
  store.ca_file = arguments.store_ca;
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
           Dependence{
               arguments.connection_age_grace != absl::InfiniteDuration(),
               arguments.connection_age != absl::InfiniteDuration(),
               "--connection-age-grace", "--connection-age"},
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

void AddServeOptions(CLI::App* subcommand, ServeArguments* arguments) {
  AddArchiveOptions(subcommand, arguments);
  AddServiceOptions(subcommand, arguments);
  AddLogOptions(*subcommand, *arguments);
  AddStorageOptions(subcommand, arguments);
  AddStoreOptions(*subcommand, *arguments);
  subcommand
      ->add_option("--config", arguments->config,
                   "TOML file with any of these options by their long names, "
                   "such as memory = \"4GiB\", or in tables: [tls] has cert "
                   "and key, [archives] has NAME = \"PATH\". Environment "
                   "variables such as QUIRED_MEMORY take precedence over it, "
                   "the command line over both; quired check-config checks it. "
                   "Read again on SIGHUP: archives, quota and log-level are "
                   "applied, other changes are logged and need a restart")
      ->type_name("FILE");
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

LogLevel LogLevelOf(const ServeArguments& arguments) {
  return arguments.log_level == "error"     ? LogLevel::kError
         : arguments.log_level == "warning" ? LogLevel::kWarning
                                            : LogLevel::kInfo;
}

}  // namespace quire
