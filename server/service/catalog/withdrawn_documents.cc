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

namespace quire {
namespace {

// True if documents of the id come after `last` in a listing.
bool IsAfter(absl::string_view id, const Archive::IdCursor& last) {
  return id > last.id &&
         !(last.is_common_prefix && absl::StartsWith(id, last.id));
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

WithdrawnDocuments::WithdrawnDocuments(
    const std::vector<WithdrawalRule>& rules) {
  for (size_t i = 0; i < rules.size(); ++i) {
    const WithdrawalRule& rule = rules[i];
    rules_bytes_ += RuleBytes(rule);
    const Action action = {.index = i, .action = rule.action};
    if (!rule.is_prefix) {
      ids_.try_emplace(rule.value, action);
    } else if (prefixes_.try_emplace(rule.value, action).second) {
      prefix_sizes_.push_back(rule.value.size());
    }
  }
  std::ranges::sort(prefix_sizes_);
  prefix_sizes_.erase(std::unique(prefix_sizes_.begin(), prefix_sizes_.end()),
                      prefix_sizes_.end());
}

absl::StatusOr<std::shared_ptr<const WithdrawnDocuments>>
WithdrawnDocuments::Resolve(const Archive& archive,
                            const std::vector<WithdrawalRule>& rules) {
  if (rules.empty()) {
    return nullptr;
  }
  if (!archive.index_damages().empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        archive.path(),
        ": documents to be withdrawn cannot be found by id, as an index is "
        "damaged: ",
        archive.index_damages().front().message()));
  }
  const std::shared_ptr<WithdrawnDocuments> found(
      new WithdrawnDocuments(rules));
  std::vector<bool> is_withdrawn(archive.info().document_count);
  std::vector<absl::string_view> matched;
  for (const WithdrawalRule& rule : rules) {
    if (rule.is_prefix) {
      bool is_there = false;
      archive.VisitDocuments(rule.value, std::nullopt,
                             [&](const Document& document) {
                               is_withdrawn[document.ordinal.value] = true;
                               is_there = true;
                               return true;
                             });
      if (is_there) {
        matched.push_back(rule.value);
      }
      continue;
    }
    const auto ordinals = archive.FindDocuments(rule.value);
    if (ordinals.ok()) {
      matched.push_back(rule.value);
      for (const DocumentOrdinal ordinal : *ordinals) {
        is_withdrawn[ordinal.value] = true;
      }
    }
  }
  for (uint64_t i = 0; i < is_withdrawn.size(); ++i) {
    if (!is_withdrawn[i]) {
      continue;
    }
    const Document document = archive.GetDocument({i}).value();
    const std::optional<Withdrawal> action = found->Match(document.id);
    const uint64_t text_begin = document.range.offset.value;
    const uint64_t text_end = text_begin + document.range.size_bytes;
    ++found->document_count_;
    if (!found->runs_.empty() && found->runs_.back().end == i &&
        found->runs_.back().action == action) {
      ++found->runs_.back().end;
      found->runs_.back().text_end = text_end;
      continue;
    }
    if (found->runs_.size() == kRunsMax) {
      return absl::FailedPreconditionError(absl::StrCat(
          archive.path(), ": documents to be withdrawn lie in more than ",
          kRunsMax, " places; build the archive without them instead"));
    }
    found->runs_.push_back({.begin = i,
                            .end = i + 1,
                            .text_begin = text_begin,
                            .text_end = text_end,
                            .action = action.value_or(Withdrawal::kBlock)});
  }
  if (found->runs_.empty()) {
    return nullptr;
  }
  found->FindIdRuns(archive, std::move(matched));
  found->HashZeros(archive.info());
  return found;
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
    const Archive::ListingCost cost = view.archive->VisitListing(
        {.prefix = prefix, .after = after, .end = view.document_count},
        [&](const Document& document) {
          is_withdrawn = Find(document.ordinal).has_value();
          is_listed = !is_withdrawn;
          if (is_withdrawn) {
            passed = Pass(document.id);
          }
          return false;
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
