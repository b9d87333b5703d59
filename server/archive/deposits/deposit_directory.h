// SPDX-License-Identifier: GPL-3.0-or-later
//
// Deposited files of a segment (FORMAT.md, "Deposited files"): the head of
// their sub-section, which an opened segment holds. Pages and literals are read
// when they are needed.
#ifndef QUIRE_SERVER_ARCHIVE_DEPOSITS_DEPOSIT_DIRECTORY_H_
#define QUIRE_SERVER_ARCHIVE_DEPOSITS_DEPOSIT_DIRECTORY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/archive/container/container_part.h"
#include "server/archive/deposits/deposit_page.h"

namespace quire {

inline constexpr size_t kDepositPathSizeBytesMax = 4096;

// SHA-256 of a file.
using DepositDigest = std::array<uint8_t, 32>;

// Consecutive items of a file, and where they are.
struct DepositPageEntry {
  DepositTotals totals;
  // The page.
  ContainerPart part;
  // The literals of its items, one after the other.
  std::vector<ContainerPart> literals = {};
};

enum class DepositState : uint8_t {
  kKept = 0,
  // The text of a document of the file was removed, and the rest with it.
  kWithdrawn = 1,
  // The file changed while it was read.
  kAbandoned = 2,
};

// The part of a deposited file that a segment has.
struct DepositPortion {
  std::string path;
  DepositState state = DepositState::kKept;
  // The file begins here; otherwise the segment before has its start.
  bool begins = true;
  // The file ends here; otherwise the next segment continues it.
  bool ends = true;
  // Start of its text in that of the segment. Portions are in this order, and
  // do not overlap.
  uint64_t text_offset = 0;
  uint64_t text_size_bytes = 0;
  // Of the whole file, if it ends here and is kept.
  uint64_t file_size_bytes = 0;
  DepositDigest digest = {};
  // None unless it is kept.
  std::vector<DepositPageEntry> pages = {};

  DepositTotals Totals() const;
};

// Deposited files of a segment, without their pages. Immutable.
class SegmentDeposits {
 public:
  SegmentDeposits() = default;

  explicit SegmentDeposits(std::vector<DepositPortion> portions)
      : portions_(std::move(portions)) {}

  // `head` is that of the container's sub-section, untrusted;
  // `text_size_bytes` is the size of the text of the segment's documents.
  // Errors: DataLoss.
  static absl::StatusOr<SegmentDeposits> Parse(ByteView head,
                                               uint64_t text_size_bytes,
                                               uint64_t data_size_bytes);
  // REQUIRES: there is a portion.
  std::string Encode() const;

  const std::vector<DepositPortion>& portions() const { return portions_; }

  uint64_t MemoryBytes() const;

 private:
  std::vector<DepositPortion> portions_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_DEPOSITS_DEPOSIT_DIRECTORY_H_
