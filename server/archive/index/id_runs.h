// SPDX-License-Identifier: GPL-3.0-or-later
//
// The section of id runs (FORMAT.md, "Id runs"): ids that are a prefix and
// consecutive numbers, such as those of a file's lines.
#ifndef QUIRE_SERVER_ARCHIVE_INDEX_ID_RUNS_H_
#define QUIRE_SERVER_ARCHIVE_INDEX_ID_RUNS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/archive/index/decimal_range.h"

namespace quire {

// Documents with consecutive ordinals, whose numbers ascend. All of them are
// one entry of the section of document ids, their lowest id.
struct IdRun {
  // Index among the entries.
  uint64_t entry = 0;
  DecimalRange numbers;
};

// `runs` ascend by entry.
std::string EncodeIdRuns(std::span<const IdRun> runs);

// `section` is untrusted. Documents without an entry are `derived_count`.
// Errors: DataLoss.
absl::StatusOr<std::vector<IdRun>> ParseIdRuns(ByteView section,
                                               uint64_t entry_count,
                                               uint64_t derived_count);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_INDEX_ID_RUNS_H_
