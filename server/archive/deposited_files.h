// SPDX-License-Identifier: GPL-3.0-or-later
//
// The deposited files of an archive: a second name space next to its documents.
#ifndef QUIRE_SERVER_ARCHIVE_DEPOSITED_FILES_H_
#define QUIRE_SERVER_ARCHIVE_DEPOSITED_FILES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"

#include "codecs/base/positions.h"
#include "server/archive/deposits/deposit_directory.h"

namespace quire {

struct DepositedFile {
  // Valid as long as the archive.
  absl::string_view path;
  // kKept or kWithdrawn; the next three are set if it is kept.
  DepositState state = DepositState::kKept;
  uint64_t size_bytes = 0;
  DepositDigest digest = {};
  // Bytes that the container has, as they are not reproduced.
  uint64_t literal_size_bytes = 0;
  // Text of its documents.
  LogicalRange text;

  // Its part in one segment.
  struct Portion {
    uint32_t segment_index = 0;
    // In SegmentDeposits::portions().
    uint32_t index = 0;
  };

  std::vector<Portion> portions = {};
};

// Thread-compatible; immutable once all segments were added.
class DepositedFiles {
 public:
  // Adds the files of the next segment, whose text begins at `start` of the
  // logical space. `deposits` must outlive this.
  void Add(uint32_t segment_index, uint64_t start,
           const SegmentDeposits& deposits);
  // Ends the adding of segments.
  void Finish();

  // Ordered by path; files of one path in order of their text.
  const std::vector<DepositedFile>& files() const { return files_; }

  // Files of which parts are missing, and which are not in files(): they
  // changed while they were read, or segments do not follow each other as they
  // did. Of these `path` and `portions` count.
  const std::vector<DepositedFile>& incomplete_files() const {
    return incomplete_files_;
  }

  // Returns the last file of this path whose text is within the first
  // `text_size_bytes` of the logical space; null if there is none.
  const DepositedFile* Find(absl::string_view path,
                            uint64_t text_size_bytes) const;

  uint64_t MemoryBytes() const;

 private:
  // Ends the file whose portions come next.
  void EndOpen(bool is_complete);

  std::vector<DepositedFile> files_;
  std::vector<DepositedFile> incomplete_files_;
  // The file that the next segment continues, and the sum over its portions.
  std::optional<DepositedFile> open_;
  uint64_t open_size_bytes_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_DEPOSITED_FILES_H_
