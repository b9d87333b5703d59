// SPDX-License-Identifier: GPL-3.0-or-later
//
// Forecast of the archive that `quired build -o NEW ARCHIVE` would write.
#ifndef QUIRE_SERVER_COMMANDS_REBUILD_ESTIMATE_H_
#define QUIRE_SERVER_COMMANDS_REBUILD_ESTIMATE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "server/archive/archive.h"
#include "server/commands/encoding_options.h"

namespace quire {

// Approximate size of the sample. Archives of at most four times as much text
// are built whole.
inline constexpr uint64_t kRebuildSampleSizeBytes = uint64_t{16} << 20;

struct RebuildEstimate {
  // Size of all files: of the archive, and of the new one by the forecast.
  uint64_t size_bytes = 0;
  uint64_t rebuilt_size_bytes = 0;
  // Text that the forecast is based on, in bytes.
  uint64_t sample_size_bytes = 0;
  // The sample is all text.
  bool is_whole = false;

  // 0 if the new archive would be as large.
  uint64_t saved_size_bytes() const {
    return size_bytes > rebuilt_size_bytes ? size_bytes - rebuilt_size_bytes
                                           : 0;
  }
};

// Builds archives of a sample of `archive`, at `path`, as `quired plan` does,
// with the default options except threads and memory, which are those of
// `encoding`. They are in TMPDIR and removed. Lists all documents twice, and
// reads the text of the sample. Deposited files are taken to stay as large.
// Blocks.
// Errors: Unavailable  TMPDIR cannot hold them; those of MakePlan();
//         Cancelled  InterruptFlag is set.
absl::StatusOr<RebuildEstimate> EstimateRebuild(
    const std::string& path, const Archive& archive,
    const EncodingOptions& encoding);

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_REBUILD_ESTIMATE_H_
