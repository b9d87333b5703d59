// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/id_runs.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "server/archive/format/column.h"

namespace quire {

std::string EncodeIdRuns(std::span<const IdRun> runs) {
  std::vector<uint64_t> entries;
  std::vector<uint64_t> firsts;
  std::vector<uint64_t> counts;
  uint64_t previous = 0;
  for (const IdRun& run : runs) {
    entries.push_back(run.entry - std::exchange(previous, run.entry));
    firsts.push_back(run.numbers.first);
    counts.push_back(run.numbers.count);
  }
  std::string section;
  AppendVarint(runs.size(), section);
  AppendColumn(entries, section);
  AppendColumn(firsts, section);
  AppendColumn(counts, section);
  return section;
}

absl::StatusOr<std::vector<IdRun>> ParseIdRuns(ByteView section,
                                               uint64_t entry_count,
                                               uint64_t derived_count) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t run_count, TakeVarint(section));
  // Each count takes a byte or more.
  if (run_count == 0 || run_count > section.size()) {
    return absl::DataLossError(
        absl::StrCat(run_count, " runs in ", section.size(), " bytes"));
  }
  QUIRE_ASSIGN_OR_RETURN(const ColumnView entries,
                         ColumnView::Take(section, run_count));
  QUIRE_ASSIGN_OR_RETURN(const ColumnView firsts,
                         ColumnView::Take(section, run_count));
  QUIRE_ASSIGN_OR_RETURN(const ColumnView counts,
                         ColumnView::Parse(section, run_count));
  std::vector<IdRun> runs;
  runs.reserve(run_count);
  uint64_t rest_count = derived_count;
  uint64_t entry = 0;
  for (uint64_t i = 0; i < run_count; ++i) {
    if ((i > 0 && entries[i] == 0) || entries[i] >= entry_count - entry) {
      return absl::DataLossError(absl::StrCat("run ", i, " is ", entries[i],
                                              " ids after id ", entry, " of ",
                                              entry_count));
    }
    entry += entries[i];
    const DecimalRange numbers = {firsts[i], counts[i]};
    if (numbers.count < 2 || numbers.count - 1 > rest_count ||
        numbers.first >= kDecimalEnd ||
        numbers.count > kDecimalEnd - numbers.first) {
      return absl::DataLossError(absl::StrCat(
          "run ", i, " has ", numbers.count, " numbers from ", numbers.first,
          ", expected 2 to ", rest_count + 1, " below ", kDecimalEnd));
    }
    rest_count -= numbers.count - 1;
    runs.push_back({.entry = entry, .numbers = numbers});
  }
  if (rest_count != 0) {
    return absl::DataLossError(
        absl::StrCat("runs stand for ", derived_count - rest_count,
                     " more documents, expected ", derived_count));
  }
  return runs;
}

}  // namespace quire
