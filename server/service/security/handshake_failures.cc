// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/security/handshake_failures.h"

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/monotonic_time.h"
#include "codecs/base/printable_text.h"

#include "grpc/grpc.h"
#include "grpc/support/log.h"

namespace quire {
namespace {

constexpr absl::Duration kBetweenLines = absl::Minutes(1);
constexpr absl::string_view kFailed = "Handshake failed";
// Logged while "resource_quota" is traced.
constexpr absl::string_view kCrowdedOut = "send goaway to free memory";

struct Reason {
  const char* name;
  // A substring of OpenSSL's message.
  absl::string_view text;
};

// The first match counts; the last entry matches all.
constexpr std::array<Reason, 7> kReasons = {{
    {"no_tls", "wrong version number"},
    {"no_tls", "http request"},
    {"no_common_version_or_cipher", "no shared cipher"},
    {"no_common_version_or_cipher", "unsupported protocol"},
    {"no_client_certificate", "peer did not return a certificate"},
    {"client_certificate_refused", "certificate verify failed"},
    {"refused_by_client", "alert"},
}};

constexpr std::array<const char*, 6> kNames = {"no_tls",
                                               "no_common_version_or_cipher",
                                               "no_client_certificate",
                                               "client_certificate_refused",
                                               "refused_by_client",
                                               "other"};

size_t IndexOf(absl::string_view message) {
  const char* name = kNames.back();
  for (const Reason& reason : kReasons) {
    if (absl::StrContains(message, reason.text)) {
      name = reason.name;
      break;
    }
  }
  size_t index = 0;
  while (absl::string_view(kNames[index]) != name) {
    ++index;
  }
  return index;
}

void TakeLine(gpr_log_func_args* line) {
  HandshakeFailures::OfProcess().Take(line->message, MonotonicNow());
}

}  // namespace

HandshakeFailures& HandshakeFailures::OfProcess() {
  // Never destroyed: gRPC's threads may log until the end.
  static HandshakeFailures* const failures = [] {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment.
    const char* const wanted = std::getenv("GRPC_VERBOSITY");
    if (wanted == nullptr || absl::string_view(wanted) == "NONE") {
      gpr_set_log_function(TakeLine);
      gpr_set_log_verbosity(GPR_LOG_SEVERITY_INFO);
      grpc_tracer_set_enabled("resource_quota", 1);
    }
    return new HandshakeFailures;
  }();
  return *failures;
}

void HandshakeFailures::SetLog(LogSink log) {
  MutexLock lock(&mutex_);
  log_ = std::move(log);
}

void HandshakeFailures::Take(absl::string_view message, absl::Time now) {
  if (absl::EndsWith(message, kCrowdedOut)) {
    crowded_out_count_.fetch_add(1);
    return;
  }
  if (!absl::StartsWith(message, kFailed)) {
    return;
  }
  const size_t index = IndexOf(message);
  MutexLock lock(&mutex_);
  Failure& failure = failures_[index];
  ++failure.count;
  if (now < failure.next_line) {
    return;
  }
  failure.next_line = now + kBetweenLines;
  // Called under the lock, so that the old function is not used after SetLog();
  // logs call nothing back.
  log_(LogLevel::kWarning,
       absl::StrCat(failure.count - failure.said_count,
                    " TLS handshakes failed (", kNames[index],
                    "), the last: ", PrintableText(std::string(message))));
  failure.said_count = failure.count;
}

std::vector<std::pair<std::string, uint64_t>> HandshakeFailures::counts()
    const {
  MutexLock lock(&mutex_);
  std::vector<std::pair<std::string, uint64_t>> counts;
  for (size_t i = 0; i < failures_.size(); ++i) {
    counts.emplace_back(kNames[i], failures_[i].count);
  }
  return counts;
}

}  // namespace quire
