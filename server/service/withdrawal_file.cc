// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/withdrawal_file.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/document_item.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/filter/filter.h"
#include "codecs/filter/short_rule.h"
#include "server/archive/files/small_file.h"
#include "server/archive/format/archive_format.h"
#include "server/service/security/access_rules.h"

namespace quire {
namespace {

constexpr uint64_t kFileSizeBytesMax = uint64_t{16} << 20;

uint64_t LineBytes(const WithdrawalLine& line) {
  return sizeof(line) + line.archive_glob.capacity() +
         line.rule.value.capacity() +
         (line.rule.filter == nullptr ? 0 : line.rule.filter->MemoryBytes()) +
         (line.value_with_blanks.has_value()
              ? line.value_with_blanks->capacity()
              : 0);
}

absl::Status Malformed(absl::string_view what, absl::string_view found) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, ", got ", QuotedText(found, 100)));
}

// Takes a word off the front of `line`, with the blanks around it.
absl::string_view TakeWord(absl::string_view& line) {
  line = absl::StripLeadingAsciiWhitespace(line);
  const size_t size = std::min(line.find_first_of(" \t"), line.size());
  const absl::string_view word = line.substr(0, size);
  line = absl::StripLeadingAsciiWhitespace(line.substr(size));
  return word;
}

// Replaces \\ and \xNN. Returns false if anything else follows a backslash. Not
// absl::CUnescape(), which knows more escapes, and takes all hex digits after
// \x.
bool Unescape(absl::string_view value, std::string& out) {
  out.reserve(value.size());
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] != '\\') {
      out.push_back(value[i]);
      continue;
    }
    const absl::string_view rest = value.substr(i + 1);
    if (absl::StartsWith(rest, "\\")) {
      out.push_back('\\');
      i += 1;
    } else if (rest.size() >= 3 && rest[0] == 'x' &&
               absl::ascii_isxdigit(static_cast<unsigned char>(rest[1])) &&
               absl::ascii_isxdigit(static_cast<unsigned char>(rest[2]))) {
      out += absl::HexStringToBytes(rest.substr(1, 2));
      i += 3;
    } else {
      return false;
    }
  }
  return true;
}

// The part of a line between the word of its kind and its action.
struct Selection {
  absl::string_view word;
  // Without the blanks around it.
  absl::string_view text;
  // With those that do not separate it.
  absl::string_view text_with_blanks;
};

// Parses an id or a prefix.
absl::Status ParseIds(const Selection& selection, WithdrawalRule::Kind kind,
                      WithdrawalLine& line) {
  line.rule.kind = kind;
  const auto parse = [&](absl::string_view text, std::string& value) {
    DocumentItem item = {.id = text};
    if (kind == WithdrawalRule::Kind::kId) {
      // Before escapes are replaced: \x09@0 is part of an id.
      item = ParseDocumentItem(text);
    }
    line.has_occurrence |= item.occurrence.has_value();
    return Unescape(item.id, value);
  };
  if (!parse(selection.text, line.rule.value)) {
    return Malformed("VALUE must have \\\\ or \\xNN after each backslash",
                     selection.text);
  }
  if (line.rule.value.size() > kDocumentIdSizeBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("VALUE has ", line.rule.value.size(),
                     " bytes, ids have at most ", kDocumentIdSizeBytesMax));
  }
  if (selection.text_with_blanks != selection.text) {
    parse(selection.text_with_blanks, line.value_with_blanks.emplace());
  }
  return absl::OkStatus();
}

absl::Status ParseId(const Selection& selection, WithdrawalLine& line) {
  return ParseIds(selection, WithdrawalRule::Kind::kId, line);
}

absl::Status ParsePrefix(const Selection& selection, WithdrawalLine& line) {
  return ParseIds(selection, WithdrawalRule::Kind::kPrefix, line);
}

absl::Status SetFilter(absl::string_view text, WithdrawalLine& line) {
  absl::StatusOr<Filter> filter = Filter::Parse(text);
  if (!filter.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("FILTER, ", filter.status().message()));
  }
  line.rule.kind = WithdrawalRule::Kind::kWhere;
  line.rule.value = filter->text();
  line.rule.filter = std::make_shared<const Filter>(*std::move(filter));
  return absl::OkStatus();
}

absl::Status ParseWhere(const Selection& selection, WithdrawalLine& line) {
  return SetFilter(selection.text, line);
}

absl::Status ParseShort(const Selection& selection, WithdrawalLine& line) {
  QUIRE_ASSIGN_OR_RETURN(
      const std::string filter,
      FilterOfShortRule(absl::StrCat(selection.word, " ", selection.text)));
  return SetFilter(filter, line);
}

// A kind of selection: sets the rest of a line whose action is set.
struct SelectionKind {
  absl::string_view word;
  absl::Status (*parse)(const Selection& selection, WithdrawalLine& line);
};

// The words of short forms are others.
constexpr std::array<SelectionKind, 3> kSelectionKinds = {{
    {.word = "id", .parse = &ParseId},
    {.word = "prefix", .parse = &ParsePrefix},
    {.word = "where", .parse = &ParseWhere},
}};

absl::StatusOr<WithdrawalLine> ParseLine(absl::string_view line) {
  const absl::string_view whole = line;
  WithdrawalLine parsed;
  parsed.archive_glob = std::string(TakeWord(line));
  const absl::string_view word = TakeWord(line);
  const size_t last = line.find_last_of(" \t");
  if (last == absl::string_view::npos) {
    return Malformed(
        "a rule must be ARCHIVES id|prefix VALUE exclude|block, ARCHIVES "
        "where FILTER exclude|block, or a short form such as ARCHIVES domain "
        "news.test 2019..2021 exclude|block",
        whole);
  }
  const absl::string_view action = line.substr(last + 1);
  const auto kind =
      std::ranges::find(kSelectionKinds, word, &SelectionKind::word);
  if (kind == kSelectionKinds.end() && !IsShortRuleWord(word)) {
    return Malformed(
        "the second word must be id, prefix, where, domain, host, digest, "
        "status or time",
        word);
  }
  const auto parse = kind == kSelectionKinds.end() ? &ParseShort : kind->parse;
  if (action != "exclude" && action != "block") {
    return Malformed("the last word must be exclude or block", action);
  }
  parsed.rule.action =
      action == "block" ? Withdrawal::kBlock : Withdrawal::kExclude;
  // One blank on each side separates it.
  const char* const begin = word.data() + word.size() + 1;
  QUIRE_RETURN_IF_ERROR(
      parse({.word = word,
             .text = absl::StripTrailingAsciiWhitespace(line.substr(0, last)),
             .text_with_blanks = absl::string_view(
                 begin, static_cast<size_t>(line.data() + last - begin))},
            parsed));
  return parsed;
}

// Returns the rules of an archive, in order.
std::vector<WithdrawalRule> RulesFor(const std::vector<WithdrawalLine>& lines,
                                     absl::string_view archive_name) {
  std::vector<WithdrawalRule> rules;
  for (const WithdrawalLine& line : lines) {
    if (MatchesGlob(line.archive_glob, archive_name)) {
      rules.push_back(line.rule);
      if (line.value_with_blanks.has_value()) {
        rules.push_back(line.rule);
        rules.back().value = *line.value_with_blanks;
      }
    }
  }
  return rules;
}

// True if they match the same documents of any archive.
bool AreSameRules(const std::vector<WithdrawalRule>& a,
                  const std::vector<WithdrawalRule>& b) {
  return std::ranges::equal(
      a, b, [](const WithdrawalRule& one, const WithdrawalRule& other) {
        return one.kind == other.kind && one.value == other.value &&
               one.action == other.action;
      });
}

}  // namespace

absl::StatusOr<std::vector<WithdrawalLine>> ParseWithdrawals(
    absl::string_view text) {
  std::vector<WithdrawalLine> lines;
  uint64_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line.front() == '#') {
      continue;
    }
    auto parsed = ParseLine(line);
    if (!parsed.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": ", parsed.status().message()));
    }
    parsed->number = number;
    parsed->rule.line_number = number;
    lines.push_back(*std::move(parsed));
  }
  return lines;
}

absl::StatusOr<WithdrawalFile::Lines> WithdrawalFile::Read(
    const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(const std::string text,
                         ReadSmallFile(path, kFileSizeBytesMax));
  auto lines = ParseWithdrawals(text);
  if (!lines.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": ", lines.status().message()));
  }
  return std::make_shared<const std::vector<WithdrawalLine>>(*std::move(lines));
}

absl::StatusOr<std::unique_ptr<WithdrawalFile>> WithdrawalFile::Open(
    const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(Lines lines, Read(path));
  return std::unique_ptr<WithdrawalFile>(
      new WithdrawalFile(path, std::move(lines)));
}

absl::StatusOr<WithdrawalFile::Matched> WithdrawalFile::Match(
    const std::vector<WithdrawalLine>& lines,
    const std::shared_ptr<const ServedArchive>& archive,
    const std::atomic<bool>* cancel) const {
  std::vector<WithdrawalRule> rules = RulesFor(lines, archive->name);
  std::ranges::move(archive->withdrawal->removed(), std::back_inserter(rules));
  Matched matched;
  WithdrawalMatching matching;
  if (services_.fields_of) {
    matching.load_fields = services_.fields_of(archive);
  }
  matching.check = [this, cancel] {
    for (const std::atomic<bool>* const flag : {services_.cancel, cancel}) {
      if (flag != nullptr && *flag) {
        return absl::CancelledError(
            "the matching of rules of withdrawal was cancelled");
      }
    }
    return absl::OkStatus();
  };
  matching.reserve = services_.reserve;
  QUIRE_ASSIGN_OR_RETURN(
      matched.documents,
      WithdrawnDocuments::Resolve(*archive->archive, rules, matching));
  if (matched.documents != nullptr && services_.reserve) {
    QUIRE_ASSIGN_OR_RETURN(
        matched.reservation,
        services_.reserve(matched.documents->memory_bytes()));
  }
  return matched;
}

uint64_t WithdrawalFile::PlannedBytes(
    std::span<const std::string> archive_names) const {
  uint64_t size_bytes = 0;
  // Few differ.
  std::map<std::string, uint64_t> copy_bytes;
  const Lines all = lines();
  for (const WithdrawalLine& line : *all) {
    size_bytes += LineBytes(line);
    uint64_t& bytes = copy_bytes[line.archive_glob];
    bytes += WithdrawnDocuments::RuleBytes(line.rule);
    if (line.value_with_blanks.has_value()) {
      bytes += WithdrawnDocuments::RuleBytes(line.rule) +
               line.value_with_blanks->size() - line.rule.value.size();
    }
  }
  for (const std::string& name : archive_names) {
    for (const auto& [glob, bytes] : copy_bytes) {
      size_bytes += MatchesGlob(glob, name) ? bytes : 0;
    }
  }
  return 2 * size_bytes;
}

bool WithdrawalFile::HasRulesFor(absl::string_view archive_name) const {
  const Lines all = lines();
  return std::any_of(all->begin(), all->end(), [&](const WithdrawalLine& line) {
    return MatchesGlob(line.archive_glob, archive_name);
  });
}

uint64_t WithdrawalFile::HeldBytes(const Catalog& catalog) const {
  uint64_t size_bytes = 0;
  const Lines all = lines();
  for (const WithdrawalLine& line : *all) {
    size_bytes += LineBytes(line);
  }
  for (const Catalog::Held& held : catalog.GetHeld()) {
    const auto documents = held.served == nullptr
                               ? nullptr
                               : held.served->withdrawal->Get().documents;
    size_bytes += documents == nullptr ? 0 : documents->memory_bytes();
  }
  return size_bytes;
}

absl::Status WithdrawalFile::Publish(std::shared_ptr<ServedArchive> archive,
                                     Catalog& catalog,
                                     const std::atomic<bool>* cancel) {
  while (true) {
    // Without the lock, as filters take long.
    const Lines used = lines();
    QUIRE_ASSIGN_OR_RETURN(Matched matched, Match(*used, archive, cancel));
    MutexLock lock(&mutex_);
    if (lines() == used) {
      archive->withdrawal->Set(std::move(matched.documents));
      catalog.Publish(std::move(archive));
      return absl::OkStatus();
    }
  }
}

absl::Status WithdrawalFile::WithdrawRemoved(
    const std::shared_ptr<const ServedArchive>& archive,
    std::vector<WithdrawalRule> removed) {
  MutexLock lock(&mutex_);
  archive->withdrawal->SetRemoved(std::move(removed));
  absl::StatusOr<Matched> matched = Match(*lines(), archive, nullptr);
  archive->withdrawal->Set(matched.ok()
                               ? std::move(matched->documents)
                               : WithdrawnDocuments::All(*archive->archive));
  return matched.status();
}

bool WithdrawalFile::IsMatchedBy(const ServedArchive& archive,
                                 const std::vector<WithdrawalLine>& former,
                                 const std::vector<WithdrawalLine>& lines) {
  const auto documents = archive.withdrawal->Get().documents;
  return (documents == nullptr || !documents->is_substitute()) &&
         AreSameRules(RulesFor(former, archive.name),
                      RulesFor(lines, archive.name));
}

absl::StatusOr<WithdrawalFile::Reloaded> WithdrawalFile::Reload(
    const Catalog& catalog) {
  MutexLock lock(&mutex_);
  QUIRE_ASSIGN_OR_RETURN(Lines fresh, Read(path_));
  const Lines former = lines();
  std::vector<std::pair<std::shared_ptr<const ServedArchive>, Matched>> all;
  Reloaded reloaded = {
      .text = absl::StrCat("rules of withdrawal: taken up from ", path_)};
  for (Catalog::Held& held : catalog.GetHeld()) {
    if (held.served == nullptr || IsMatchedBy(*held.served, *former, *fresh)) {
      continue;
    }
    absl::StatusOr<Matched> matched = Match(*fresh, held.served, nullptr);
    if (absl::IsCancelled(matched.status())) {
      return matched.status();
    }
    if (!matched.ok()) {
      reloaded.withheld.push_back(absl::StrCat(
          "archive ", held.served->name,
          ": all of its documents are withheld until a reload can match the "
          "rules of withdrawal: ",
          matched.status().message()));
      matched =
          Matched{.documents = WithdrawnDocuments::All(*held.served->archive)};
    }
    all.emplace_back(std::move(held.served), *std::move(matched));
  }
  // The rules first: what is opened later is withheld before it is matched.
  {
    MutexLock lines_lock(&lines_mutex_);
    lines_.swap(fresh);
  }
  for (auto& [archive, matched] : all) {
    archive->withdrawal->Set(std::move(matched.documents));
  }
  return reloaded;
}

void WithdrawalFile::AddReferences(const Catalog::ByName& archives,
                                   std::vector<LogLine>& said) {
  size_t warning_count = 0;
  uint64_t more_count = 0;
  for (const auto& [name, archive] : archives) {
    const auto documents = archive->withdrawal->Get().documents;
    const std::vector<std::string> sentences =
        documents == nullptr ? std::vector<std::string>()
                             : DescribeReferences(documents->references());
    for (const std::string& sentence : sentences) {
      if (++warning_count > kWarningsMax) {
        ++more_count;
        continue;
      }
      said.push_back(
          {LogLevel::kWarning, absl::StrCat("archive ", name, ": ", sentence)});
    }
  }
  if (more_count > 0) {
    said.push_back(
        {LogLevel::kWarning,
         absl::StrCat(FormatCounted(more_count, "more warning of records",
                                    "more warnings of records"),
                      " that stay and refer to withdrawn documents")});
  }
}

std::vector<LogLine> WithdrawalFile::Describe(const Catalog& catalog) const {
  const Catalog::ByName archives = catalog.Get();
  // They may have some.
  std::vector<std::string> closed;
  catalog.Visit([&](const Catalog::Shown& shown) {
    if (!archives.contains(shown.name)) {
      closed.push_back(shown.name);
    }
  });
  const Lines all = lines();
  uint64_t document_count = 0;
  for (const auto& [name, archive] : archives) {
    const auto documents = archive->withdrawal->Get().documents;
    document_count += documents == nullptr ? 0 : documents->document_count();
  }
  std::vector<LogLine> said = {
      {LogLevel::kInfo,
       absl::StrCat("withdrawn documents: ",
                    FormatCounted(document_count, "document", "documents"),
                    " by ", FormatCounted(all->size(), "rule", "rules"))}};
  const auto numbered =
      std::ranges::find_if(*all, &WithdrawalLine::has_occurrence);
  if (numbered != all->end()) {
    const auto more =
        std::count_if(numbered + 1, all->end(),
                      [](const auto& line) { return line.has_occurrence; });
    said.push_back(
        {LogLevel::kWarning,
         absl::StrCat(
             path_, ": line ", numbered->number,
             " names one document of an id by a tab and @N, and "
             "withdraws all of them; ",
             FormatCounted(static_cast<uint64_t>(more), "more line does too",
                           "more lines do too"))});
  }
  const size_t said_count = said.size();
  AddReferences(archives, said);
  const size_t reference_count = said.size() - said_count;
  for (const WithdrawalLine& line : *all) {
    if (said.size() > reference_count + kWarningsMax) {
      break;
    }
    bool matches_name = false;
    bool has_documents = false;
    for (const auto& [name, archive] : archives) {
      const bool matches = MatchesGlob(line.archive_glob, name);
      matches_name = matches_name || matches;
      has_documents = has_documents ||
                      (matches && archive->withdrawal->Get().has_documents());
    }
    has_documents = has_documents ||
                    std::ranges::any_of(closed, [&](const std::string& name) {
                      return MatchesGlob(line.archive_glob, name);
                    });
    if (!has_documents) {
      said.push_back(
          {LogLevel::kWarning,
           absl::StrCat(path_, ": line ", line.number, " withdraws nothing: ",
                        matches_name ? "no document of archive "
                                     : "no archive has the name ",
                        QuotedText(line.archive_glob, 100),
                        matches_name ? " matches a rule" : "")});
    }
  }
  return said;
}

}  // namespace quire
