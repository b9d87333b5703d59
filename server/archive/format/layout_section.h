// SPDX-License-Identifier: GPL-3.0-or-later
//
// The layout of a segment whose text is not stored in its own order, or not all
// of it (FORMAT.md, "Layout").
#ifndef QUIRE_SERVER_ARCHIVE_FORMAT_LAYOUT_SECTION_H_
#define QUIRE_SERVER_ARCHIVE_FORMAT_LAYOUT_SECTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "codecs/reorder/stored_run.h"

namespace quire {

// Of the text, for one checksum.
inline constexpr uint64_t kLayoutSumSizeBytes = uint64_t{1} << 20;
// Two runs that follow each other have at least so many bytes together, which
// bounds what any range is made of.
inline constexpr uint64_t kRunPairSizeBytesMin = 512;

struct LayoutSection {
  // Of the stored text, of which each byte is in a run.
  uint64_t stored_text_size_bytes = 0;
  // In the order of the text; a run never goes on where the one before ends.
  std::vector<StoredRun> runs;
  // Checksum64() of each kLayoutSumSizeBytes of the text; the last may be
  // shorter.
  std::vector<uint64_t> sums;
};

std::string EncodeLayout(const LayoutSection& layout);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FORMAT_LAYOUT_SECTION_H_
