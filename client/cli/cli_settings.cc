// SPDX-License-Identifier: Apache-2.0
#include "client/cli/cli_settings.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"

#include "client/cli/security_options.h"
#include "client/quire/wire_encoding.h"
#include "codecs/base/duration_text.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/base/trace_parent.h"

namespace quire {
namespace {

constexpr absl::Duration kTimeoutMin = absl::Milliseconds(1);

}  // namespace

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
  // The XDG base directory specification ignores relative paths.
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
