// SPDX-License-Identifier: Apache-2.0
#include "client/http/gateway_settings.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "client/cli/security_options.h"
#include "codecs/base/byte_size.h"
#include "codecs/base/duration_text.h"
#include "codecs/base/manual.h"
#include "codecs/base/number_range.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// The program, gRPC and their buffers.
constexpr size_t kProcessSizeBytes = size_t{40} << 20;
// An answer of the server in all its forms, for each thread.
constexpr size_t kThreadSizeBytes = size_t{1} << 20;
// Windows of decoders, or a page of a list as message and text.
constexpr size_t kHeavyThreadSizeBytes = size_t{16} << 20;
constexpr size_t kMemoryMin = size_t{80} << 20;
constexpr size_t kMemoryPerHeavyThread = size_t{64} << 20;
constexpr size_t kHeavyThreadsMax = 8;
constexpr size_t kSpoolSizeMin = size_t{16} << 20;
constexpr size_t kHeaderSizeMin = size_t{4} << 10;
constexpr size_t kHeaderSizeMax = size_t{1} << 20;

absl::StatusOr<absl::Duration> ParseTime(const char* option,
                                         const std::string& text,
                                         const DurationRange& range) {
  const absl::StatusOr<absl::Duration> time = ParseDurationText(text, range);
  if (!time.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " ", time.status().message()));
  }
  return time;
}

absl::StatusOr<size_t> ParseSize(const char* option, const std::string& text,
                                 size_t min, size_t max) {
  const absl::StatusOr<uint64_t> size = ParseByteSize(text);
  if (!size.ok() || *size < min || *size > max) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " must be ", FormatByteSizeExact(min), " to ",
                     FormatByteSizeExact(max), ", got \"", text, "\""));
  }
  return *size;
}

void AddListenOptions(CLI::App& app, GatewaySettings& settings) {
  app.add_option("--listen", settings.daemon.listen_address,
                 "Listen on this address, HOST:PORT or unix:PATH; port 0 is a "
                 "free one")
      ->type_name("ADDRESS")
      ->capture_default_str();
  app.add_flag("--behind-tls", settings.daemon.accepts_remote,
               "Accept addresses that other machines can reach; only a proxy "
               "with TLS may be able to connect");
  app.add_option("--host", settings.daemon.rules.hosts,
                 "Host name in the URLs of this gateway; may be repeated. "
                 "Requests for other hosts get 421. Always accepted: "
                 "localhost, 127.0.0.1 and [::1]")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_option("--base-path", settings.daemon.rules.base_path,
                 "Path below which a proxy serves this gateway, such as "
                 "/archives: links of /browse begin with it. Requests may, "
                 "too. X-Forwarded-Prefix replaces it")
      ->type_name("PATH");
  app.add_option("--allow-origin", settings.daemon.rules.allowed_origins,
                 "Let web pages of this origin, such as "
                 "https://replayweb.page, read answers; * means all. May be "
                 "repeated")
      ->type_name("ORIGIN")
      ->allow_extra_args(false);
  app.add_option("--files", settings.files_directory,
                 "Serve the files of this directory at /files/, such as WACZ "
                 "files whose crawl is in an archive; see docs/http.md")
      ->type_name("DIR");
  app.add_option("--admin", settings.daemon.admin_address,
                 "Serve /metrics, /healthz and /readyz on this address")
      ->type_name("ADDRESS");
  app.add_option("--access-log", settings.access_log,
                 "Append a line of JSON per request to this file; - is "
                 "standard output. SIGHUP opens it again")
      ->type_name("FILE");
}

void AddLimitOptions(CLI::App& app, GatewaySettings& settings) {
  app.add_option("--memory", settings.memory,
                 "Memory limit of the process, at least 80MiB")
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_option("--connections", settings.daemon.connections_max,
                 "Maximum number of connections; further ones get 503")
      ->type_name("N")
      ->check(CountInRange(1, 100'000))
      ->capture_default_str();
  app.add_option("--connections-per-address",
                 settings.daemon.address_connections_max,
                 "Maximum number of connections per client address; further "
                 "ones get 429. A proxy is one address")
      ->type_name("N")
      ->check(CountInRange(1, 100'000))
      ->capture_default_str();
  app.add_option("--threads", settings.daemon.threads,
                 "Calls to the server at the same time")
      ->type_name("N")
      ->check(CountInRange(1, 64))
      ->capture_default_str();
  app.add_option("--spool-dir", settings.spool_directory,
                 "Directory for decoded pages over 256 KiB, in files without "
                 "names; default: $TMPDIR, otherwise /tmp")
      ->type_name("DIR")
      ->envname("TMPDIR");
  app.add_option("--spool-size", settings.spool_size,
                 "Maximum size of decoded pages in --spool-dir, 16MiB to 1TiB; "
                 "larger pages get 503")
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_option("--header-size", settings.header_size,
                 "Maximum size of a request's line and headers, 4KiB to 1MiB; "
                 "each header counts 64 bytes more. "
                 "Longer ones get 414 or 431. Charged to --memory for each "
                 "connection")
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_option("--header-timeout", settings.header_timeout,
                 "Close connections whose next request is not complete after "
                 "this time, 100ms to 1h")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--idle-timeout", settings.idle_timeout,
                 "Close connections whose client takes no byte of an answer "
                 "for this time, 1s to 1h")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--drain-timeout", settings.drain_timeout,
                 "On SIGTERM, time for answers to end before they are cut")
      ->type_name("TIME")
      ->capture_default_str();
}

Manual MakeManual() {
  Manual manual;
  manual.version = QUIRE_VERSION;
  manual.exit_codes = {{"0", "Stopped by SIGTERM or SIGINT."},
                       {"1", "Cannot listen, or the system refused something."},
                       {"2", "Invalid command line."}};
  manual.environment = {{"QUIRE_SERVER", "Default of --server."},
                        {"TMPDIR", "Default of --spool-dir."}};
  manual.examples = {
      {"quire-http --listen 127.0.0.1:8080",
       "Serve the archives of the server on this machine."},
      {"curl -r 0-99 http://127.0.0.1:8080/v1/docs/doc/index.html",
       "Read 100 bytes of a document."},
      {"quire-http --listen unix:/run/quire/http.sock --host docs.example",
       "Listen for a proxy with TLS on this machine."}};
  AddSecurityEnvironment(manual);
  return manual;
}

}  // namespace

void DefineGatewayOptions(CLI::App& app, GatewaySettings& settings) {
  app.add_option("-s,--server", settings.server,
                 "Address of the Quire server: HOST:PORT or unix:PATH")
      ->type_name("ADDRESS")
      ->envname("QUIRE_SERVER")
      ->capture_default_str();
  AddSecurityOptions(app, settings.security, settings.allow_readable_secrets);
  app.add_option("--timeout", settings.call_timeout,
                 "Time limit for the server's next answer; after it clients "
                 "get 504, or 503 if the server asked to wait")
      ->type_name("TIME")
      ->capture_default_str();
  AddListenOptions(app, settings);
  AddLimitOptions(app, settings);
  AttachManual(app, MakeManual());
}

absl::StatusOr<GatewayOptions> MakeGatewayOptions(
    const GatewaySettings& settings) {
  QUIRE_RETURN_IF_ERROR(
      CheckSecretFiles(settings.security, settings.allow_readable_secrets));
  GatewayOptions options;
  options.daemon = settings.daemon;
  QUIRE_ASSIGN_OR_RETURN(
      const absl::Duration call_timeout,
      ParseTime("--timeout", settings.call_timeout,
                {.min = absl::Milliseconds(100), .max = absl::Hours(1)}));
  QUIRE_ASSIGN_OR_RETURN(
      options.daemon.header_timeout,
      ParseTime("--header-timeout", settings.header_timeout,
                {.min = absl::Milliseconds(100), .max = absl::Hours(1)}));
  QUIRE_ASSIGN_OR_RETURN(
      options.daemon.idle_timeout,
      ParseTime("--idle-timeout", settings.idle_timeout,
                {.min = absl::Seconds(1), .max = absl::Hours(1)}));
  QUIRE_ASSIGN_OR_RETURN(options.drain_timeout,
                         ParseTime("--drain-timeout", settings.drain_timeout,
                                   {.max = absl::Hours(24)}));
  QUIRE_ASSIGN_OR_RETURN(options.daemon.header_size_bytes,
                         ParseSize("--header-size", settings.header_size,
                                   kHeaderSizeMin, kHeaderSizeMax));
  QUIRE_ASSIGN_OR_RETURN(options.storage.spool_size_bytes,
                         ParseSize("--spool-size", settings.spool_size,
                                   kSpoolSizeMin, size_t{1} << 40));
  options.storage.spool_directory =
      settings.spool_directory.empty() ? "/tmp" : settings.spool_directory;
  if (access(options.storage.spool_directory.c_str(), W_OK | X_OK) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--spool-dir ", options.storage.spool_directory,
                     ": no files can be created there: ",
                     std::generic_category().message(errno)));
  }
  options.storage.files_directory = settings.files_directory;
  QUIRE_ASSIGN_OR_RETURN(
      const size_t memory,
      ParseSize("--memory", settings.memory, kMemoryMin, size_t{1} << 40));
  const size_t heavy_threads =
      std::clamp<size_t>(memory / kMemoryPerHeavyThread, 2, kHeavyThreadsMax) -
      1;
  options.daemon.heavy_threads = static_cast<int>(heavy_threads);
  const size_t fixed =
      kProcessSizeBytes + heavy_threads * kHeavyThreadSizeBytes +
      static_cast<size_t>(options.daemon.threads) * kThreadSizeBytes;
  if (fixed + kMemoryPerHeavyThread / 8 > memory) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--memory must be at least ",
        FormatByteSizeExact(fixed + kMemoryPerHeavyThread / 8), " with ",
        options.daemon.threads, " threads, got \"", settings.memory, "\""));
  }
  options.budget_size_bytes = memory - fixed;
  absl::StatusOr<std::string> base_path =
      ParseBasePath(options.daemon.rules.base_path);
  if (!base_path.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--base-path: ", base_path.status().message()));
  }
  options.daemon.rules.base_path = *std::move(base_path);
  for (std::string& host : options.daemon.rules.hosts) {
    host = absl::AsciiStrToLower(host);
  }
  options.daemon.rules.hosts.insert(options.daemon.rules.hosts.end(),
                                    {"localhost", "127.0.0.1", "[::1]"});
  options.client.address = settings.server;
  options.client.security = settings.security;
  options.client.deadline = call_timeout;
  options.client.stream_idle_max = call_timeout;
  // Another server behind the proxy may answer at once. HTTP clients try again
  // after a 503: requests that wait here for a server that is gone would hold
  // threads, which probes and files need too. Those for which the server names
  // a delay leave threads free.
  options.client.attempts_max = 2;
  options.client.awaits_return = false;
  return options;
}

}  // namespace quire
