// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/groundwork.h"

#include <sys/stat.h>

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "server/service/listen_address.h"

namespace quire {
namespace {

// Returns the value, or null after adding a fault of `option`.
template <typename T>
std::unique_ptr<T> TakeOrNote(absl::string_view option,
                              absl::StatusOr<std::unique_ptr<T>> result,
                              std::vector<absl::Status>& faults) {
  if (!result.ok()) {
    faults.emplace_back(result.status().code(),
                        absl::StrCat(option, ": ", result.status().message()));
    return nullptr;
  }
  return *std::move(result);
}

void CheckAddresses(const ServerOptions& options,
                    std::vector<absl::Status>& faults) {
  if (absl::Status status = CheckListenAddress(options.listen_address);
      !status.ok()) {
    faults.push_back(std::move(status));
  } else if (options.tls.is_set() && UnixSocketPath(options.listen_address)) {
    faults.push_back(absl::InvalidArgumentError(
        absl::StrCat(options.listen_address,
                     ": TLS is for HOST:PORT; a unix socket needs none, as its "
                     "file restricts access")));
  }
  if (!options.metrics_address.empty()) {
    if (absl::Status status = CheckMetricsAddress(options.metrics_address);
        !status.ok()) {
      faults.push_back(std::move(status));
    }
  }
}

void WarnOfAccess(const ServerOptions& options, const AccessControl& access) {
  if (!options.say) {
    return;
  }

  struct stat info {};

  if (stat(options.access_path.c_str(), &info) == 0 &&
      (info.st_mode & S_IROTH) != 0) {
    options.say(LogLevel::kWarning,
                absl::StrCat(options.access_path,
                             ": can be read by all users, and contains access "
                             "rules: chmod o-r"));
  }
  if (const std::string soon = access.DescribeExpiring(absl::Now());
      !soon.empty()) {
    options.say(LogLevel::kWarning, soon);
  }
}

// Plans all archives before any is opened, so that a lack of memory is found
// without filling the memory first.
void PlanArchives(const ServerOptions& options, Groundwork& groundwork,
                  std::vector<absl::Status>& faults) {
  absl::StatusOr<std::vector<PlannedArchive>> planned =
      ReadOutlines(options.archives, groundwork.broken);
  if (!planned.ok()) {
    faults.push_back(planned.status());
    return;
  }
  groundwork.planned = *std::move(planned);
  if (!groundwork.broken.empty() &&
      (!options.skip_broken || groundwork.planned.empty())) {
    faults.push_back(JoinReasons(groundwork.broken, groundwork.planned.size()));
  }
  std::vector<ArchiveNeed> needs;
  needs.reserve(groundwork.planned.size());
  for (const auto& [argument, outline] : groundwork.planned) {
    needs.push_back({argument.name, outline.memory_bytes});
  }
  std::vector<std::string> names;
  names.reserve(needs.size());
  for (const ArchiveNeed& need : needs) {
    names.push_back(need.name);
  }
  absl::StatusOr<MemoryPlan> plan = PlanMemory(
      options.memory_bytes, needs, !options.archives_directory.empty(),
      groundwork.withdrawals == nullptr
          ? 0
          : groundwork.withdrawals->PlannedBytes(names));
  if (plan.ok()) {
    groundwork.plan = *plan;
  } else {
    faults.push_back(plan.status());
  }
}

}  // namespace

Groundwork LayGroundwork(const ServerOptions& options,
                         std::vector<absl::Status>& faults) {
  Groundwork groundwork;
  if (options.archives.empty() && options.archives_directory.empty()) {
    faults.push_back(
        absl::InvalidArgumentError("no archive to serve; name at least one"));
  }
  CheckAddresses(options, faults);
  if (!options.access_path.empty()) {
    groundwork.access_control = TakeOrNote(
        "--access", AccessControl::Open(options.access_path), faults);
    if (groundwork.access_control != nullptr) {
      WarnOfAccess(options, *groundwork.access_control);
    }
  }
  if (!options.withdrawn_path.empty()) {
    groundwork.withdrawals = TakeOrNote(
        "--withdrawn", WithdrawalFile::Open(options.withdrawn_path), faults);
  }
  if (options.tls.is_set()) {
    groundwork.certificates =
        TakeOrNote("--tls-cert",
                   TlsCertificates::Open(options.tls,
                                         // Others may have a token.
                                         options.access_path.empty()
                                             ? ClientCertificates::kRequired
                                             : ClientCertificates::kOptional),
                   faults);
  }
  if (const absl::Status status = ReadHashKey(options.call_log).status();
      !status.ok()) {
    faults.push_back(status);
  }
  PlanArchives(options, groundwork, faults);
  return groundwork;
}

}  // namespace quire
