// SPDX-License-Identifier: Apache-2.0
#include "client/cli/complete_words.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "client/quire/client.h"
#include "codecs/base/monotonic_time.h"

namespace quire {
namespace {

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

}  // namespace

std::vector<std::string> WordsFromServer(const CliSettings& settings,
                                         const TypedWords& typed) {
  std::vector<std::string> offered;
  const bool is_archive = typed.positional == "ARCHIVE";
  if (!is_archive && typed.positional != "ID" && typed.positional != "PREFIX") {
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

}  // namespace quire
