// SPDX-License-Identifier: Apache-2.0
//
// Types of positions, one per address space, so that offsets in different
// spaces cannot be confused.
#ifndef QUIRE_CODECS_BASE_POSITIONS_H_
#define QUIRE_CODECS_BASE_POSITIONS_H_

#include <compare>
#include <cstdint>

#include "codecs/base/bytes.h"

namespace quire {

// A byte of the logical space: all documents concatenated in ingest order.
struct LogicalOffset {
  uint64_t value = 0;
  auto operator<=>(const LogicalOffset&) const = default;
};

// A byte of one segment file.
struct FileOffset {
  uint64_t value = 0;
  auto operator<=>(const FileOffset&) const = default;
};

// A range of the logical space.
struct LogicalRange {
  LogicalOffset offset;
  uint64_t size_bytes = 0;
  auto operator<=>(const LogicalRange&) const = default;
};

// The n-th document of the archive, from 0, in ingest order.
struct DocumentOrdinal {
  uint64_t value = 0;
  auto operator<=>(const DocumentOrdinal&) const = default;
};

// A block: number block_index of segment number segment_index, both from 0.
struct BlockAddress {
  uint32_t segment_index = 0;
  uint64_t block_index = 0;
  auto operator<=>(const BlockAddress&) const = default;
};

// A part of a block's text, to be written by a decoder.
struct BlockPart {
  uint32_t offset_in_block = 0;
  MutableByteView text;
};

// A byte range of an open file.
struct Extent {
  // Borrowed; open as long as the extent's source guarantees.
  int fd = -1;
  FileOffset offset;
  uint32_t size_bytes = 0;
  // The same file opened with O_DIRECT, for reads whose offset, size and memory
  // are multiples of the alignment, a power of two up to a page; -1: none. Open
  // as long as `fd`.
  int direct_fd = -1;
  uint32_t direct_alignment_bytes = 1;
};

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_POSITIONS_H_
