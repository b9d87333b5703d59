// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/live_files.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"

namespace quire {

bool LiveFiles::Reload(const Catalog& catalog,
                       std::vector<LogLine>& lines) const {
  bool succeeded = true;
  const auto add = [&](absl::string_view what,
                       const absl::StatusOr<std::string>& outcome) {
    succeeded = succeeded && outcome.ok();
    lines.push_back(outcome.ok()
                        ? LogLine{LogLevel::kInfo, *outcome}
                        : LogLine{LogLevel::kWarning,
                                  absl::StrCat(what, " stays unchanged: ",
                                               outcome.status().message())});
  };
  if (access_control != nullptr) {
    add("access", access_control->Reload());
    if (std::string soon = access_control->DescribeExpiring(absl::Now());
        !soon.empty()) {
      lines.push_back({LogLevel::kWarning, std::move(soon)});
    }
  }
  if (withdrawals != nullptr) {
    const absl::StatusOr<WithdrawalFile::Reloaded> outcome =
        withdrawals->Reload(catalog);
    add("the file of withdrawn documents",
        outcome.ok() ? absl::StatusOr<std::string>(outcome->text)
                     : outcome.status());
    if (!outcome.ok()) {
      lines.back().level = LogLevel::kError;
    } else {
      succeeded = succeeded && outcome->withheld.empty();
      for (const std::string& archive : outcome->withheld) {
        lines.push_back({LogLevel::kError, archive});
      }
    }
  }
  if (store != nullptr) {
    const absl::Status read = store->ReloadCredentials();
    add("credentials for object stores",
        read.ok() ? absl::StatusOr<std::string>(
                        "credentials for object stores: read again")
                  : read);
  }
  if (certificates != nullptr) {
    absl::StatusOr<std::string> outcome = certificates->Check();
    if (outcome.ok() && outcome->empty()) {
      outcome = "the certificate: unchanged";
    }
    add("the certificate", outcome);
  }
  if (call_log != nullptr) {
    const absl::Status reopened = call_log->Reopen();
    add("the access log",
        reopened.ok() ? absl::StatusOr<std::string>("access log: reopened")
                      : reopened);
  }
  return succeeded;
}

}  // namespace quire
