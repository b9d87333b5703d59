// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/id_index.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/column.h"
#include "server/archive/index/id_runs.h"

namespace quire {
namespace {

size_t DigitCount(uint64_t number) {
  size_t count = 1;
  for (; number >= 10; number /= 10) {
    ++count;
  }
  return count;
}

}  // namespace

absl::StatusOr<IdIndex> IdIndex::Parse(const Sections& sections,
                                       const Counts& counts,
                                       std::vector<bool>& repeats) {
  IdIndex index;
  index.size_ = counts.document_count;
  auto entries = IdTable::Parse(sections.ids,
                                counts.document_count - counts.derived_id_count,
                                counts.id_size_bytes, &repeats);
  QUIRE_RETURN_IF_ERROR(InFile("document ids", entries.status()));
  index.entries_ = *std::move(entries);
  index.id_size_bytes_max_ = index.entries_.id_size_bytes_max();
  if (sections.order.has_value()) {
    QUIRE_RETURN_IF_ERROR(
        InFile("document order", index.ParseOrder(*sections.order, repeats)));
  }
  if (sections.runs.has_value()) {
    QUIRE_RETURN_IF_ERROR(
        InFile("id runs", index.ParseRuns(*sections.runs, counts, repeats)));
  } else if (counts.derived_id_count != 0) {
    return absl::DataLossError(absl::StrCat(
        counts.derived_id_count, " documents without ids, and no id runs"));
  }
  return index;
}

absl::Status IdIndex::ParseOrder(ByteView section,
                                 const std::vector<bool>& repeats) {
  const uint64_t count = entries_.size();
  QUIRE_ASSIGN_OR_RETURN(const ColumnView steps,
                         ColumnView::Parse(section, count));
  PackedVector order(count, count - 1);
  std::vector<bool> seen(count);
  uint64_t previous = 0;
  // Wraps in a malformed section, which the comparison detects.
  uint64_t expected = 0;
  for (uint64_t rank = 0; rank < count; ++rank) {
    const uint64_t ordinal =
        expected + static_cast<uint64_t>(UnZigZag(steps[rank]));
    if (ordinal >= count || seen[ordinal]) {
      return absl::DataLossError(absl::StrCat(
          "rank ", rank, " has ordinal ", ordinal,
          ordinal >= count ? ", which does not exist" : " once more"));
    }
    if (repeats[rank] && ordinal < previous) {
      return absl::DataLossError(absl::StrCat(
          "rank ", rank, " has ordinal ", ordinal,
          " and the same id as the one before with ordinal ", previous));
    }
    seen[ordinal] = true;
    order.Set(rank, ordinal);
    previous = ordinal;
    expected = ordinal + 1;
  }
  order_ = InvertiblePermutation(std::move(order));
  return absl::OkStatus();
}

absl::Status IdIndex::ParseRuns(ByteView section, const Counts& counts,
                                const std::vector<bool>& repeats) {
  QUIRE_ASSIGN_OR_RETURN(
      const std::vector<IdRun> runs,
      ParseIdRuns(section, entries_.size(), counts.derived_id_count));
  runs_.reserve(runs.size());
  uint64_t derived_count = 0;
  for (const IdRun& run : runs) {
    runs_.push_back({.first_number = run.numbers.first,
                     .count = static_cast<uint32_t>(run.numbers.count),
                     .entry = static_cast<uint32_t>(run.entry),
                     .rank = static_cast<uint32_t>(run.entry + derived_count)});
    derived_count += run.numbers.count - 1;
  }
  runs_by_ordinal_.resize(runs_.size());
  std::iota(runs_by_ordinal_.begin(), runs_by_ordinal_.end(), uint32_t{0});
  std::sort(runs_by_ordinal_.begin(), runs_by_ordinal_.end(),
            [this](uint32_t a, uint32_t b) {
              return order_[runs_[a].entry] < order_[runs_[b].entry];
            });
  derived_count = 0;
  for (const uint32_t i : runs_by_ordinal_) {
    Run& run = runs_[i];
    run.ordinal = static_cast<uint32_t>(order_[run.entry] + derived_count);
    derived_count += run.count - uint64_t{1};
  }
  for (const Run& run : runs_) {
    QUIRE_RETURN_IF_ERROR(CheckRun(run, repeats));
    const uint64_t longest =
        PrefixOf(run).size() + DigitCount(run.numbers().first + run.count - 1);
    if (longest > kDocumentIdSizeBytesMax) {
      return absl::DataLossError(absl::StrCat(
          "an id is longer than ", kDocumentIdSizeBytesMax, " bytes"));
    }
    id_size_bytes_max_ = std::max(id_size_bytes_max_, longest);
  }
  return absl::OkStatus();
}

absl::Status IdIndex::CheckRun(const Run& run,
                               const std::vector<bool>& repeats) const {
  const uint64_t lowest = run.numbers().NumberAt(0);
  const std::string id = entries_.Get(run.entry);
  if (!absl::EndsWith(id, absl::StrCat(lowest))) {
    return absl::DataLossError(absl::StrCat("the id of entry ", run.entry,
                                            " does not end in ", lowest));
  }
  const uint64_t next = uint64_t{run.entry} + 1;
  if (repeats[run.entry] ||
      (next < entries_.size() &&
       entries_.Get(next) <= absl::StrCat(PrefixOf(run), run.numbers().NumberAt(
                                                             run.count - 1)))) {
    return absl::DataLossError(absl::StrCat(
        "another id is equal to, or between, those of the run of entry ",
        run.entry));
  }
  return absl::OkStatus();
}

std::string IdIndex::PrefixOf(const Run& run) const {
  std::string id = entries_.Get(run.entry);
  id.resize(id.size() - DigitCount(run.numbers().NumberAt(0)));
  return id;
}

const IdIndex::Run* IdIndex::RunUpTo(uint64_t rank) const {
  const auto after = std::upper_bound(
      runs_.begin(), runs_.end(), rank,
      [](uint64_t wanted, const Run& run) { return wanted < run.rank; });
  return after == runs_.begin() ? nullptr : &*(after - 1);
}

uint64_t IdIndex::EntryOf(uint64_t rank) const {
  const Run* const run = RunUpTo(rank);
  return run == nullptr           ? rank
         : rank < run->rank_end() ? run->entry
                                  : run->entry + 1 + (rank - run->rank_end());
}

uint64_t IdIndex::RankOfEntry(uint64_t entry) const {
  const auto from = std::lower_bound(
      runs_.begin(), runs_.end(), entry,
      [](const Run& run, uint64_t wanted) { return run.entry < wanted; });
  if (from == runs_.begin()) {
    return entry;
  }
  const Run& run = *(from - 1);
  return run.rank_end() + (entry - run.entry - 1);
}

std::string IdIndex::Get(uint64_t rank) const {
  const Run* const run = RunUpTo(rank);
  return run != nullptr && rank < run->rank_end()
             ? absl::StrCat(PrefixOf(*run),
                            run->numbers().NumberAt(rank - run->rank))
             : entries_.Get(EntryOf(rank));
}

uint64_t IdIndex::OrdinalAt(uint64_t rank) const {
  const Run* const run = RunUpTo(rank);
  if (run != nullptr && rank < run->rank_end()) {
    return run->ordinal +
           (run->numbers().NumberAt(rank - run->rank) - run->numbers().first);
  }
  const uint64_t ordinal = order_[EntryOf(rank)];
  const auto after =
      std::upper_bound(runs_by_ordinal_.begin(), runs_by_ordinal_.end(),
                       ordinal, [this](uint64_t wanted, uint32_t i) {
                         return wanted < order_[runs_[i].entry];
                       });
  if (after == runs_by_ordinal_.begin()) {
    return ordinal;
  }
  const Run& before = runs_[*(after - 1)];
  return before.ordinal_end() + (ordinal - order_[before.entry] - 1);
}

uint64_t IdIndex::RankOf(uint64_t ordinal) const {
  const auto after =
      std::upper_bound(runs_by_ordinal_.begin(), runs_by_ordinal_.end(),
                       ordinal, [this](uint64_t wanted, uint32_t i) {
                         return wanted < runs_[i].ordinal;
                       });
  if (after == runs_by_ordinal_.begin()) {
    return RankOfEntry(order_.IndexOf(ordinal));
  }
  const Run& run = runs_[*(after - 1)];
  if (ordinal < run.ordinal_end()) {
    const uint64_t number = run.first_number + (ordinal - run.ordinal);
    return run.rank + run.numbers().CountBelow(absl::StrCat(number));
  }
  return RankOfEntry(
      order_.IndexOf(order_[run.entry] + 1 + (ordinal - run.ordinal_end())));
}

IdIndex::Ranks IdIndex::Find(absl::string_view key) const {
  const Ranks found = entries_.Find(key);
  if (runs_.empty()) {
    return found;
  }
  // The last entry not above the key: a run there may hold it.
  if (found.end > 0) {
    const uint64_t entry = found.end - 1;
    const auto run = std::lower_bound(
        runs_.begin(), runs_.end(), entry,
        [](const Run& one, uint64_t wanted) { return one.entry < wanted; });
    if (run != runs_.end() && run->entry == entry) {
      const std::string prefix = PrefixOf(*run);
      if (!absl::StartsWith(key, prefix)) {
        // Not below the prefix, as the lowest id is not above the key.
        return {run->rank_end(), run->rank_end()};
      }
      const absl::string_view digits = key.substr(prefix.size());
      const uint64_t rank = run->rank + run->numbers().CountBelow(digits);
      const std::optional<uint64_t> number = ParseDecimal(digits);
      const bool is_there =
          number.has_value() && run->numbers().Contains(*number);
      return {rank, rank + (is_there ? 1 : 0)};
    }
  }
  const uint64_t begin = RankOfEntry(found.begin);
  return {begin, begin + found.count()};
}

uint64_t IdIndex::MemoryBytes() const {
  return entries_.MemoryBytes() + order_.MemoryBytes() +
         runs_.capacity() * sizeof(Run) +
         runs_by_ordinal_.capacity() * sizeof(uint32_t);
}

uint64_t IdIndex::EstimateRunsBytes(uint64_t section_size_bytes) {
  // Each count takes a byte or more.
  return section_size_bytes * (sizeof(Run) + sizeof(uint32_t));
}

IdIndex::Cursor::Cursor(const IdIndex& index, uint64_t rank)
    : index_(&index),
      rank_(rank),
      entries_(index.entries_, rank == index.size_ ? index.entries_.size()
                                                   : index.EntryOf(rank)) {
  EnterRun();
}

void IdIndex::Cursor::Next() {
  ++rank_;
  if (rank_ < run_end_) {
    run_id_.resize(prefix_size_);
    absl::StrAppend(&run_id_, run_->numbers().NumberAt(rank_ - run_->rank));
    return;
  }
  entries_.Next();
  EnterRun();
}

void IdIndex::Cursor::EnterRun() {
  if (index_->runs_.empty() || at_end()) {
    return;
  }
  run_ = index_->RunUpTo(rank_);
  if (run_ == nullptr || rank_ >= run_->rank_end()) {
    return;
  }
  run_end_ = run_->rank_end();
  run_id_ = index_->PrefixOf(*run_);
  prefix_size_ = run_id_.size();
  absl::StrAppend(&run_id_, run_->numbers().NumberAt(rank_ - run_->rank));
}

}  // namespace quire
