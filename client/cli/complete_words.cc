// SPDX-License-Identifier: Apache-2.0
#include "client/cli/complete_words.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "client/quire/client.h"

namespace quire {
namespace {

// A shell waits for it with its user.
constexpr absl::Duration kTimeMax = absl::Seconds(1);
constexpr size_t kOfferedMax = 1000;

// A command line as far as it was typed, before its last word.
struct TypedWords {
  // The subcommand, the archive and so on.
  std::vector<std::string> positionals;
  std::optional<std::string> server;
  // The last word is the value of an option.
  bool value_is_next = false;
};

const CLI::App* FindSubcommand(const CLI::App& app, const std::string& name) {
  const auto found = app.get_subcommands(
      [&name](const CLI::App* sub) { return sub->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

const CLI::Option* FindOption(const CLI::App& app, const CLI::App* subcommand,
                              const std::string& name) {
  const CLI::Option* option =
      subcommand == nullptr ? nullptr : subcommand->get_option_no_throw(name);
  return option == nullptr ? app.get_option_no_throw(name) : option;
}

TypedWords Understand(const CLI::App& app,
                      const std::vector<std::string>& words) {
  TypedWords typed;
  const CLI::App* subcommand = nullptr;
  bool options_ended = false;
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (options_ended || word.size() < 2 || word[0] != '-') {
      typed.positionals.push_back(word);
      if (typed.positionals.size() == 1) {
        subcommand = FindSubcommand(app, word);
      }
      continue;
    }
    if (word == "--") {
      options_ended = true;
      continue;
    }
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const CLI::Option* option = FindOption(app, subcommand, name);
    if (option == nullptr || option->get_items_expected_max() == 0) {
      continue;
    }
    std::string value;
    if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (++i + 1 < words.size()) {
      value = words[i];
    } else {
      typed.value_is_next = true;
      break;
    }
    if (option->check_lname("server")) {
      typed.server = value;
    }
  }
  return typed;
}

// The name of the positional that the last word is; empty if none.
std::string NextPositional(const CLI::App& app, const TypedWords& typed) {
  if (typed.positionals.empty()) {
    return "";
  }
  const CLI::App* subcommand = FindSubcommand(app, typed.positionals.front());
  if (subcommand == nullptr) {
    return "";
  }
  size_t index = 1;
  for (const CLI::Option* option : subcommand->get_options()) {
    if (!option->get_positional()) {
      continue;
    }
    if (index == typed.positionals.size() || option->get_expected_max() > 1) {
      return option->get_name(true);
    }
    ++index;
  }
  return "";
}

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
    if (absl::StartsWith({archive.name().data(), archive.name().size()},
                         prefix)) {
      offered.push_back(archive.name());
    }
  }
}

void AppendIds(Client& client, const std::string& archive,
               absl::string_view prefix, std::vector<std::string>& offered) {
  const absl::Time deadline = absl::Now() + kTimeMax;
  DocumentLister lister =
      client.ListDocuments({archive.data(), archive.size()}, prefix);
  while (offered.size() < kOfferedMax && absl::Now() < deadline) {
    const auto document = lister.Next();
    if (!document.ok() || !document->has_value()) {
      return;
    }
    const std::string& id = (*document)->id();
    // Of captures of a page, one.
    if (CanBeOffered({id.data(), id.size()}) &&
        (offered.empty() || offered.back() != id)) {
      offered.push_back(id);
    }
  }
}

}  // namespace

std::vector<std::string> CompleteWords(const CLI::App& app,
                                       const CliSettings& settings,
                                       const std::vector<std::string>& words) {
  std::vector<std::string> offered;
  const TypedWords typed = Understand(app, words);
  const std::string positional =
      typed.value_is_next ? "" : NextPositional(app, typed);
  if (positional != "ARCHIVE" && positional != "ID" && positional != "PREFIX") {
    return offered;
  }
  ClientOptions options;
  options.address = typed.server.value_or(settings.server);
  options.security = settings.security;
  options.deadline = kTimeMax;
  options.attempts_max = 1;
  const absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Connect(std::move(options));
  if (!client.ok()) {
    return offered;
  }
  const absl::string_view prefix(words.back().data(), words.back().size());
  positional == "ARCHIVE"
      ? AppendArchives(**client, prefix, offered)
      : AppendIds(**client, typed.positionals[1], prefix, offered);
  return offered;
}

}  // namespace quire
