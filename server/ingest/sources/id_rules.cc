// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/id_rules.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

#include "re2/re2.h"

namespace quire {
namespace {

absl::Status Malformed(absl::string_view glob, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("--exclude ", QuotedText(glob), ": ", what));
}

void AppendLiteral(char c, std::string& regex) {
  regex += re2::RE2::QuoteMeta(re2::StringPiece(&c, 1));
}

// Removes the class at the front of `glob`, from its bracket on. A slash is in
// no class.
absl::Status TakeClass(absl::string_view whole, absl::string_view& glob,
                       std::string& regex) {
  size_t at = 1;
  const bool is_negated =
      glob.size() > at && (glob[at] == '!' || glob[at] == '^');
  at += is_negated ? 1 : 0;
  std::string members;
  // A bracket in first position is a member.
  for (bool is_first = true;; is_first = false) {
    if (at == glob.size()) {
      return Malformed(whole,
                       "a [ must have its ]; write \\[ for the character");
    }
    if (glob[at] == ']' && !is_first) {
      break;
    }
    if (glob[at] == '\\' && at + 1 < glob.size()) {
      ++at;
    } else if (glob[at] == '-') {
      members += '-';
      ++at;
      continue;
    }
    AppendLiteral(glob[at++], members);
  }
  glob.remove_prefix(at + 1);
  absl::StrAppend(&regex, is_negated ? "[^/" : "[", members, "]");
  return absl::OkStatus();
}

// Returns a pattern as a regular expression to search for in a path.
absl::StatusOr<std::string> ToRegex(absl::string_view whole) {
  absl::string_view glob = whole;
  std::string regex = absl::ConsumePrefix(&glob, "/") ? "^" : "(?:^|/)";
  const bool directories_only = absl::ConsumeSuffix(&glob, "/");
  if (glob.empty()) {
    return Malformed(whole, "the pattern must name something");
  }
  if (glob.front() == '/' || glob.back() == '/') {
    return Malformed(whole, "one slash must be enough at either end");
  }
  // Zero directories too, as below.
  if (absl::ConsumePrefix(&glob, "**/")) {
    regex += "(?:.*/)?";
  }
  while (!glob.empty()) {
    if (absl::ConsumePrefix(&glob, "/**/")) {
      regex += "/(?:.*/)?";
    } else if (absl::ConsumePrefix(&glob, "**")) {
      regex += ".*";
    } else if (absl::ConsumePrefix(&glob, "*")) {
      regex += "[^/]*";
    } else if (absl::ConsumePrefix(&glob, "?")) {
      regex += "[^/]";
    } else if (glob.front() == '[') {
      QUIRE_RETURN_IF_ERROR(TakeClass(whole, glob, regex));
    } else {
      if (glob.front() == '\\' && glob.size() > 1) {
        glob.remove_prefix(1);
      }
      AppendLiteral(glob.front(), regex);
      glob.remove_prefix(1);
    }
  }
  return regex + (directories_only ? "/" : "(?:/|$)");
}

re2::RE2::Options RegexOptions() {
  re2::RE2::Options options(re2::RE2::Latin1);
  options.set_dot_nl(true);
  options.set_log_errors(false);
  options.set_never_capture(true);
  return options;
}

}  // namespace

IdRules::IdRules(const IdRuleOptions& options)
    : strip_prefix_(options.strip_prefix), prefix_(options.prefix) {}

IdRules::~IdRules() = default;

absl::StatusOr<std::shared_ptr<const IdRules>> IdRules::Create(
    const IdRuleOptions& options) {
  std::shared_ptr<IdRules> rules(new IdRules(options));
  std::string all;
  for (const std::string& glob : options.exclude_globs) {
    QUIRE_ASSIGN_OR_RETURN(const std::string regex, ToRegex(glob));
    const re2::RE2 alone(regex, RegexOptions());
    if (!alone.ok()) {
      return Malformed(
          glob, absl::StrCat("not a pattern: ", std::string(alone.error())));
    }
    absl::StrAppend(&all, all.empty() ? "" : "|", "(?:", regex, ")");
  }
  if (!all.empty()) {
    auto excluded = std::make_unique<re2::RE2>(all, RegexOptions());
    if (!excluded->ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the patterns of --exclude are too many or too long: ",
                       excluded->error()));
    }
    rules->excluded_ = std::move(excluded);
  }
  return rules;
}

bool IdRules::Excludes(absl::string_view path) const {
  return excluded_ != nullptr &&
         re2::RE2::PartialMatch(re2::StringPiece(path.data(), path.size()),
                                *excluded_);
}

std::string IdRules::Rename(absl::string_view id) const {
  absl::ConsumePrefix(&id, strip_prefix_);
  return absl::StrCat(prefix_, id);
}

}  // namespace quire
