// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog/withdrawn_documents.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"
#include "server/archive/filtered_documents.h"

namespace quire {
namespace {

// True if documents of the id come after `last` in a listing.
bool IsAfter(absl::string_view id, const Archive::IdCursor& last) {
  return id > last.id &&
         !(last.is_common_prefix && absl::StartsWith(id, last.id));
}

absl::StatusOr<std::shared_ptr<void>> Reserve(
    const WithdrawalMatching& matching, uint64_t bytes) {
  return matching.reserve ? matching.reserve(bytes)
                          : absl::StatusOr<std::shared_ptr<void>>(nullptr);
}

// Appends a range of zeros to those that `hash` stands for.
uint64_t ExtendHash(uint64_t hash, uint64_t begin, uint64_t end) {
  std::array<uint8_t, 3 * sizeof(uint64_t)> bytes;
  StoreLittleEndian(hash, bytes.data());
  StoreLittleEndian(begin, bytes.data() + sizeof(uint64_t));
  StoreLittleEndian(end, bytes.data() + 2 * sizeof(uint64_t));
  return std::max<uint64_t>(Checksum64(bytes), 1);
}

}  // namespace

std::vector<WithdrawalRule> RulesForRemoved(const Archive& before,
                                            const Archive& after) {
  std::vector<WithdrawalRule> rules;
  const std::optional<ArchiveView> view = after.FindState(before.info().uuid);
  if (!view.has_value() || view->removals_hash == 0) {
    return rules;
  }
  const uint64_t count =
      std::min(view->document_count, before.info().document_count);
  for (uint64_t i = 0; i < count; ++i) {
    if (after.IsRedacted({i}) && !before.IsRedacted({i})) {
      rules.push_back({.value = before.GetDocument({i}).value().id,
                       .action = Withdrawal::kBlock});
    }
  }
  return rules;
}

WithdrawnDocuments::WithdrawnDocuments(
    const std::vector<WithdrawalRule>& rules) {
  for (size_t i = 0; i < rules.size(); ++i) {
    const WithdrawalRule& rule = rules[i];
    rules_bytes_ += RuleBytes(rule);
    const Action action = {.index = i, .action = rule.action};
    switch (rule.kind) {
      case WithdrawalRule::Kind::kId:
        ids_.try_emplace(rule.value, action);
        break;
      case WithdrawalRule::Kind::kPrefix:
        if (prefixes_.try_emplace(rule.value, action).second) {
          prefix_sizes_.push_back(rule.value.size());
        }
        break;
      case WithdrawalRule::Kind::kWhere:
        break;
    }
  }
  std::ranges::sort(prefix_sizes_);
  prefix_sizes_.erase(std::unique(prefix_sizes_.begin(), prefix_sizes_.end()),
                      prefix_sizes_.end());
}

// Withdrawn documents by ordinal.
class WithdrawnDocuments::Marks {
 public:
  explicit Marks(uint64_t document_count)
      : is_withdrawn_(document_count), is_blocked_(document_count) {}

  // Memory, in bytes.
  static uint64_t Bytes(uint64_t document_count) {
    return document_count / 4 + 2 * sizeof(std::vector<bool>);
  }

  // False if an earlier rule has marked it.
  bool Mark(DocumentOrdinal ordinal, Withdrawal action) {
    if (is_withdrawn_[ordinal.value]) {
      return false;
    }
    is_withdrawn_[ordinal.value] = true;
    is_blocked_[ordinal.value] = action == Withdrawal::kBlock;
    return true;
  }

  // Calls `visit` with each run of documents with one action, in order.
  template <typename Visit>
  void VisitRuns(Visit visit) const {
    const uint64_t count = is_withdrawn_.size();
    for (uint64_t begin = 0; begin < count;) {
      uint64_t end = begin + 1;
      while (end < count && is_withdrawn_[end] == is_withdrawn_[begin] &&
             is_blocked_[end] == is_blocked_[begin]) {
        ++end;
      }
      if (is_withdrawn_[begin]) {
        visit(begin, end,
              is_blocked_[begin] ? Withdrawal::kBlock : Withdrawal::kExclude);
      }
      begin = end;
    }
  }

 private:
  std::vector<bool> is_withdrawn_;
  std::vector<bool> is_blocked_;
};

absl::Status WithdrawnDocuments::MarkDocuments(
    const Archive& archive, const std::vector<WithdrawalRule>& rules,
    const WithdrawalMatching& matching, Marks& marks,
    std::vector<absl::string_view>& matched) {
  for (const WithdrawalRule& rule : rules) {
    bool is_there = false;
    switch (rule.kind) {
      case WithdrawalRule::Kind::kId:
        for (const DocumentOrdinal ordinal :
             archive.FindDocuments(rule.value)
                 .value_or(std::vector<DocumentOrdinal>())) {
          marks.Mark(ordinal, rule.action);
          is_there = true;
        }
        break;
      case WithdrawalRule::Kind::kPrefix:
        archive.VisitDocuments(rule.value, std::nullopt,
                               [&](const Document& document) {
                                 marks.Mark(document.ordinal, rule.action);
                                 is_there = true;
                                 return true;
                               });
        break;
      case WithdrawalRule::Kind::kWhere: {
        const absl::Status status = VisitMatches(
            archive, *rule.filter,
            matching.load_fields ? matching.load_fields
                                 : BlockingPartLoader(archive),
            matching.check, [&](DocumentOrdinal ordinal) {
              has_selected_ = marks.Mark(ordinal, rule.action) || has_selected_;
            });
        if (!status.ok()) {
          return absl::Status(
              status.code(),
              absl::StrCat(archive.path(), ": line ", rule.line_number,
                           " of the rules of withdrawal: ", status.message()));
        }
        break;
      }
    }
    if (is_there) {
      matched.push_back(rule.value);
    }
  }
  return absl::OkStatus();
}

absl::Status WithdrawnDocuments::FindRuns(const Archive& archive,
                                          const Marks& marks,
                                          const WithdrawalMatching& matching) {
  size_t run_count = 0;
  marks.VisitRuns([&](uint64_t, uint64_t, Withdrawal) { ++run_count; });
  if (run_count > kRunsMax) {
    return absl::FailedPreconditionError(absl::StrCat(
        archive.path(), ": documents to be withdrawn lie in more than ",
        kRunsMax,
        " places; build the archive without them, or remove them by quired "
        "redact"));
  }
  QUIRE_ASSIGN_OR_RETURN(const std::shared_ptr<void> reservation,
                         Reserve(matching, run_count * sizeof(Run)));
  runs_.reserve(run_count);
  marks.VisitRuns([&](uint64_t begin, uint64_t end, Withdrawal action) {
    const LogicalRange first = archive.GetDocumentRange({begin}).value();
    const LogicalRange last = archive.GetDocumentRange({end - 1}).value();
    document_count_ += end - begin;
    runs_.push_back({.begin = begin,
                     .end = end,
                     .text_begin = first.offset.value,
                     .text_end = last.offset.value + last.size_bytes,
                     .action = action,
                     .begins_empty = first.size_bytes == 0,
                     .ends_empty = last.size_bytes == 0});
  });
  return absl::OkStatus();
}

absl::StatusOr<KeptReferences> WithdrawnDocuments::FindReferences(
    const Archive& archive, const WithdrawalMatching& matching) const {
  QUIRE_ASSIGN_OR_RETURN(
      const std::shared_ptr<void> reservation,
      Reserve(matching, EstimateReferencesBytes(archive, document_count_)));
  return FindKeptReferences(
      archive, {.is_removed =
                    [this](DocumentOrdinal ordinal) {
                      return Find(ordinal).has_value();
                    },
                .with_unlocated = true,
                .load = matching.load_fields ? matching.load_fields
                                             : BlockingPartLoader(archive),
                .check = matching.check});
}

uint64_t WithdrawnDocuments::ReferencesBytes() const {
  uint64_t size_bytes = references_.failure.capacity();
  for (const auto* const names :
       {&references_.revisits, &references_.unlocated}) {
    for (const std::string& name : *names) {
      size_bytes += sizeof(std::string) + name.capacity();
    }
  }
  return size_bytes;
}

absl::StatusOr<std::shared_ptr<const WithdrawnDocuments>>
WithdrawnDocuments::Resolve(const Archive& archive,
                            const std::vector<WithdrawalRule>& rules,
                            const WithdrawalMatching& matching) {
  if (rules.empty()) {
    return nullptr;
  }
  if (!archive.index_damages().empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        archive.path(),
        ": documents to be withdrawn cannot be found, as an index is damaged: ",
        archive.index_damages().front().message()));
  }
  uint64_t filter_bytes = 0;
  bool has_filter = false;
  for (const WithdrawalRule& rule : rules) {
    if (rule.kind == WithdrawalRule::Kind::kWhere) {
      has_filter = true;
      filter_bytes = std::max(filter_bytes,
                              EstimateVisitMatchesBytes(archive, *rule.filter));
    }
  }
  const uint64_t document_count = archive.info().document_count;
  QUIRE_ASSIGN_OR_RETURN(
      const std::shared_ptr<void> reservation,
      Reserve(matching, Marks::Bytes(document_count) + filter_bytes));
  const std::shared_ptr<WithdrawnDocuments> found(
      new WithdrawnDocuments(rules));
  Marks marks(document_count);
  std::vector<absl::string_view> matched;
  QUIRE_RETURN_IF_ERROR(
      found->MarkDocuments(archive, rules, matching, marks, matched));
  QUIRE_RETURN_IF_ERROR(found->FindRuns(archive, marks, matching));
  if (found->runs_.empty()) {
    return nullptr;
  }
  found->FindIdRuns(archive, std::move(matched));
  found->HashZeros(archive.info());
  if (has_filter) {
    absl::StatusOr<KeptReferences> references =
        found->FindReferences(archive, matching);
    if (absl::IsCancelled(references.status())) {
      return references.status();
    }
    found->references_ =
        references.ok()
            ? *std::move(references)
            : KeptReferences{.failure =
                                 std::string(references.status().message())};
  }
  return found;
}

std::shared_ptr<const WithdrawnDocuments> WithdrawnDocuments::All(
    const Archive& archive) {
  const ArchiveInfo& info = archive.info();
  if (info.document_count == 0) {
    return nullptr;
  }
  const std::shared_ptr<WithdrawnDocuments> all(new WithdrawnDocuments(
      {{.kind = WithdrawalRule::Kind::kPrefix, .action = Withdrawal::kBlock}}));
  all->is_substitute_ = true;
  all->document_count_ = info.document_count;
  all->runs_.push_back({.begin = 0,
                        .end = info.document_count,
                        .text_begin = 0,
                        .text_end = info.size_bytes,
                        .action = Withdrawal::kBlock});
  all->id_runs_.push_back({.begin = "", .last = all->LastOfRule("")});
  all->id_runs_bytes_ = sizeof(IdRun);
  all->HashZeros(info);
  return all;
}

void WithdrawnDocuments::HashZeros(const ArchiveInfo& info) {
  for (const auto* const states : {&info.redacted_states, &info.history}) {
    for (const ArchiveState& state : *states) {
      state_zeros_.push_back({.state_size_bytes = state.size_bytes});
    }
  }
  state_zeros_.push_back({.state_size_bytes = info.size_bytes});
  // A redacted state may be as large as one of the history.
  std::ranges::sort(state_zeros_, {}, &StateZeros::state_size_bytes);
  const std::vector<AnswerRange> zeros = ZerosIn({{0}, info.size_bytes});
  uint64_t hash = 0;
  auto range = zeros.begin();
  for (StateZeros& state : state_zeros_) {
    for (; range != zeros.end() &&
           range->offset + range->size_bytes <= state.state_size_bytes;
         ++range) {
      hash = ExtendHash(hash, range->offset, range->offset + range->size_bytes);
    }
    const bool ends_within =
        range != zeros.end() && range->offset < state.state_size_bytes;
    state.hash = ends_within
                     ? ExtendHash(hash, range->offset, state.state_size_bytes)
                     : hash;
  }
}

uint64_t WithdrawnDocuments::ZerosHash(uint64_t state_size_bytes) const {
  const auto found = std::ranges::lower_bound(
      state_zeros_, state_size_bytes, {}, &StateZeros::state_size_bytes);
  return found == state_zeros_.end() ? 0 : found->hash;
}

std::optional<Withdrawal> WithdrawnDocuments::Match(
    absl::string_view id) const {
  std::optional<Action> first;
  const auto consider = [&first](const Action& action) {
    if (!first.has_value() || action.index < first->index) {
      first = action;
    }
  };
  if (const auto found = ids_.find(id); found != ids_.end()) {
    consider(found->second);
  }
  for (const size_t size : prefix_sizes_) {
    if (size > id.size()) {
      break;
    }
    if (const auto found = prefixes_.find(id.substr(0, size));
        found != prefixes_.end()) {
      consider(found->second);
    }
  }
  return first.has_value() ? std::optional(first->action) : std::nullopt;
}

std::optional<Withdrawal> WithdrawnDocuments::Find(
    DocumentOrdinal ordinal) const {
  const auto after =
      std::ranges::upper_bound(runs_, ordinal.value, {}, &Run::begin);
  if (after == runs_.begin() || std::prev(after)->end <= ordinal.value) {
    return std::nullopt;
  }
  return std::prev(after)->action;
}

uint64_t WithdrawnDocuments::NextListed(uint64_t ordinal) const {
  auto run = std::ranges::upper_bound(runs_, ordinal, {}, &Run::end);
  // Runs with different actions may be neighbours.
  for (; run != runs_.end() && run->begin <= ordinal; ++run) {
    ordinal = run->end;
  }
  return ordinal;
}

std::vector<AnswerRange> WithdrawnDocuments::ZerosIn(LogicalRange range) const {
  std::vector<AnswerRange> zeros;
  const uint64_t begin = range.offset.value;
  const uint64_t end = begin + range.size_bytes;
  for (auto run = std::ranges::upper_bound(runs_, begin, {}, &Run::text_end);
       run != runs_.end() && run->text_begin < end; ++run) {
    const uint64_t zero_begin = std::max(begin, run->text_begin) - begin;
    const uint64_t zero_end = std::min(end, run->text_end) - begin;
    if (zero_begin == zero_end) {
      continue;
    }
    if (!zeros.empty() &&
        zeros.back().offset + zeros.back().size_bytes == zero_begin) {
      zeros.back().size_bytes = zero_end - zeros.back().offset;
    } else {
      zeros.push_back(
          {.offset = zero_begin, .size_bytes = zero_end - zero_begin});
    }
  }
  return zeros;
}

bool WithdrawnDocuments::HasDocumentIn(LogicalRange range) const {
  const uint64_t begin = range.offset.value;
  const uint64_t end = begin + range.size_bytes;
  for (auto run = std::ranges::lower_bound(runs_, begin, {}, &Run::text_end);
       begin < end && run != runs_.end() && run->text_begin <= end; ++run) {
    if ((run->text_end > begin || run->ends_empty) &&
        (run->text_begin < end || run->begins_empty)) {
      return true;
    }
  }
  return false;
}

std::optional<absl::string_view> WithdrawnDocuments::CoveringPrefix(
    absl::string_view id) const {
  for (const size_t size : prefix_sizes_) {
    if (size > id.size()) {
      break;
    }
    if (const auto found = prefixes_.find(id.substr(0, size));
        found != prefixes_.end()) {
      return found->first;
    }
  }
  return std::nullopt;
}

void WithdrawnDocuments::FindIdRuns(const Archive& archive,
                                    std::vector<absl::string_view> matched) {
  std::ranges::sort(matched);
  for (const absl::string_view begin : matched) {
    if (!id_runs_.empty() && !IsAfter(begin, id_runs_.back().last)) {
      continue;
    }
    IdRun run = {.begin = std::string(begin), .last = LastOfRule(begin)};
    bool goes_on = true;
    while (goes_on) {
      goes_on = false;
      // A prefix is passed by a search, ids of rules are read.
      const Archive::IdCursor after = run.last;
      archive.VisitListing(
          {.after = &after},
          [&](const Document& document) {
            if (!Match(document.id).has_value()) {
              return false;
            }
            run.last = LastOfRule(document.id);
            goes_on = run.last.is_common_prefix;
            return !goes_on;
          },
          [](absl::string_view) { return true; });
    }
    id_runs_bytes_ += run.begin.size() + run.last.id.size();
    id_runs_.push_back(std::move(run));
  }
  id_runs_bytes_ += id_runs_.capacity() * sizeof(IdRun);
}

Archive::IdCursor WithdrawnDocuments::LastOfRule(absl::string_view id) const {
  const std::optional<absl::string_view> covering = CoveringPrefix(id);
  return covering.has_value()
             ? Archive::IdCursor{.id = std::string(*covering),
                                 .is_common_prefix = true}
             : Archive::IdCursor{.id = std::string(id), .ordinal = UINT64_MAX};
}

Archive::IdCursor WithdrawnDocuments::Pass(absl::string_view id) const {
  const auto after = std::ranges::upper_bound(
      id_runs_, id, {},
      [](const IdRun& run) { return absl::string_view(run.begin); });
  if (after != id_runs_.begin() && !IsAfter(id, std::prev(after)->last)) {
    return std::prev(after)->last;
  }
  return LastOfRule(id);
}

std::optional<Archive::IdCursor> WithdrawnDocuments::PassPrefix(
    const ArchiveView& view, absl::string_view prefix,
    const Archive::IdCursor* after, uint64_t work_max, uint64_t& work) const {
  Archive::IdCursor passed;
  do {
    bool is_listed = false;
    bool is_withdrawn = false;
    uint64_t selected_count = 0;
    const Archive::ListingCost cost = view.archive->VisitListing(
        {.prefix = prefix, .after = after, .end = view.document_count},
        [&](const Document& document) {
          is_listed = !Find(document.ordinal).has_value();
          if (is_listed) {
            return false;
          }
          is_withdrawn = true;
          if (Match(document.id).has_value()) {
            passed = Pass(document.id);
            return false;
          }
          passed = {.id = document.id, .ordinal = document.ordinal.value};
          return work + ++selected_count < work_max;
        },
        [](absl::string_view) { return true; });
    work += cost.search_count + cost.id_count;
    if (is_listed) {
      return std::nullopt;
    }
    if (!is_withdrawn) {
      return Archive::IdCursor{.id = std::string(prefix),
                               .is_common_prefix = true};
    }
    after = &passed;
  } while (absl::StartsWith(passed.id, prefix) && work < work_max);
  return passed;
}

}  // namespace quire
