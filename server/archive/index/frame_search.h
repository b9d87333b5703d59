// SPDX-License-Identifier: GPL-3.0-or-later
//
// Finds the blocks of a segment whose block index is damaged.
#ifndef QUIRE_SERVER_ARCHIVE_INDEX_FRAME_SEARCH_H_
#define QUIRE_SERVER_ARCHIVE_INDEX_FRAME_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "codecs/base/bytes.h"
#include "server/archive/format/block_frame.h"
#include "server/archive/index/block_spans.h"
#include "server/archive/index/elias_fano.h"

namespace quire {

// Searches a segment for its frames, whose checksums name the block. Holds 4
// MiB. Past a hole, each position is tried as the start of each block that fits
// the distance: frames have a least and a largest size. Thread-compatible.
class FrameSearch {
 public:
  // Reads bytes of the file; those that cannot be read become 0.
  using Read = std::function<void(uint64_t offset, MutableByteView out)>;

  // `blocks_end` is the offset past the last frame. `blocks` must outlive it.
  FrameSearch(Read read, uint32_t segment_number, uint64_t blocks_end,
              const BlockSpans& blocks);

  // Returns the start of each frame, and the end of the last. Frames that are
  // not found share the bytes between their neighbours. Call once.
  EliasFano Run();

 private:
  struct Found {
    uint64_t block_index = 0;
    uint64_t offset = 0;
  };

  // Blocks that can begin at a position.
  struct Candidates {
    uint64_t first = 0;
    uint64_t last = 0;
    // The most likely one.
    uint64_t expected = 0;
  };

  // Valid until the next call. REQUIRES: the bytes are before blocks_end_.
  ByteView BytesAt(uint64_t offset, size_t size_bytes);
  // Returns the size of the frame that the bytes at `offset` can begin, by its
  // word alone; 0 if there is none.
  uint64_t PossibleSizeAt(uint64_t offset);
  // True if the frame of `size_bytes` at `offset` is that of the block.
  // REQUIRES: PossibleSizeAt() returned the size.
  bool IsBlock(uint64_t block_index, uint64_t offset, uint64_t size_bytes);
  // Returns the block whose frame of `size_bytes` is at `offset`; the number of
  // blocks if there is none.
  uint64_t FindBlock(const Candidates& candidates, uint64_t offset,
                     uint64_t size_bytes);
  // REQUIRES: blocks from `lost` on are missing from `start` to `offset`.
  Candidates CandidatesAt(uint64_t lost, uint64_t start, uint64_t offset) const;
  // Returns the first undamaged frame past block `lost` at `offset`; the end of
  // all blocks if none is found.
  Found FindNext(uint64_t lost, uint64_t offset);

  const Read read_;
  const uint32_t segment_number_;
  const uint64_t blocks_end_;
  const BlockSpans& blocks_;
  uint64_t frame_size_bytes_max_ = 0;
  // Bytes of checksums that were computed in vain.
  uint64_t work_bytes_ = 0;
  std::vector<uint8_t> window_;
  uint64_t window_start_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_INDEX_FRAME_SEARCH_H_
