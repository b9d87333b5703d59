// SPDX-License-Identifier: GPL-3.0-or-later
//
// Progress of scrubbing, and its file in `quired serve --state-dir`.
#ifndef QUIRE_SERVER_SERVICE_SCRUB_STATE_H_
#define QUIRE_SERVER_SERVICE_SCRUB_STATE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace quire {

struct ScrubOptions {
  // Affects behaviour. Time between the ends of two passes over an archive;
  // zero: no scrubbing.
  absl::Duration interval = absl::ZeroDuration();
  // Directory for the progress, so that a restart resumes; empty: none.
  std::string state_directory = {};
  // Affects performance. Bytes of files per second.
  uint64_t rate_bytes_per_second = uint64_t{20} << 20;
};

// Progress of one archive. Times are in seconds since 1970, by the system's
// clock.
struct ScrubProgress {
  std::string uuid = {};
  // Blocks read in the current pass; 0 between passes.
  uint64_t next_block = 0;
  // The segment of the next block, by Archive::SegmentNumber(), and the blocks
  // of it that were read: the position if the archive grows, and its last
  // segments are joined. Unset: not known, as between passes.
  std::optional<uint32_t> segment_number = {};
  uint64_t segment_next_block = 0;
  // Damaged blocks of the current pass so far, and of the last one.
  uint64_t damaged_count = 0;
  uint64_t last_damaged_count = 0;
  // End of the last pass; before the first, the time when the archive was first
  // seen.
  int64_t completed_at_s = 0;

  bool operator==(const ScrubProgress&) const = default;
};

// By name of the archive.
using ScrubState = std::map<std::string, ScrubProgress, std::less<>>;

// Limit on the size of the file.
inline constexpr uint64_t kScrubStateSizeBytesMax = uint64_t{64} << 20;

std::string EncodeScrubState(const ScrubState& state);

// Reads version 1, too, which lacks positions in segments.
// `text` is untrusted. Errors: DataLoss  not the text of a state.
absl::StatusOr<ScrubState> ParseScrubState(absl::string_view text);

// Reads the file "scrub" of a directory; an empty state if there is none.
// Errors: FailedPrecondition  it cannot be read. DataLoss.
absl::StatusOr<ScrubState> ReadScrubState(const std::string& directory);

// Replaces the file atomically, and syncs it. Blocks on I/O.
// Errors: as ErrnoStatus().
absl::Status WriteScrubState(const std::string& directory,
                             const ScrubState& state);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_SCRUB_STATE_H_
