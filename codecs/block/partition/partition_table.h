// SPDX-License-Identifier: Apache-2.0
//
// The head of a block that is stored in partitions: how large they are and
// where each lies. Of a block of n partitions it is
//   u8               binary logarithm of the partition size in bytes
//   n - 1 varints    stored sizes of all partitions but the last
// and the partitions follow, one after the other to the end of the block.
#ifndef QUIRE_CODECS_BLOCK_PARTITION_PARTITION_TABLE_H_
#define QUIRE_CODECS_BLOCK_PARTITION_PARTITION_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"

#include "codecs/base/bytes.h"
#include "codecs/block_codec.h"

namespace quire {

// REQUIRES: IsPartitionSize(partition_size).
inline size_t PartitionCount(size_t raw_size, size_t partition_size) {
  return (raw_size + partition_size - 1) / partition_size;
}

// An upper bound of the head's size for a block of `raw_size` bytes of text.
// REQUIRES: IsPartitionSize(partition_size).
size_t PartitionHeadSizeMax(size_t raw_size, uint32_t partition_size);

// Writes the head for partitions of these stored sizes; returns its size.
// REQUIRES: `head` has PartitionHeadSizeMax(); no size is 0.
size_t WritePartitionHead(uint32_t partition_size,
                          std::span<const uint32_t> stored_sizes,
                          MutableByteView head);

// Finds the partitions of one block. Thread-compatible; allocates nothing.
class PartitionTable {
 public:
  // Reads the head of `stored`, which is untrusted and must outlive the table.
  // REQUIRES: 0 < raw_size <= kBlockSizeBytesMax,
  //           IsPartitionSize(partition_size).
  // Errors: DataLoss  the head is malformed, names another partition size, or
  //                   its sizes are 0 or do not fit `stored`.
  absl::Status Parse(ByteView stored, size_t raw_size, uint32_t partition_size);

  size_t count() const { return count_; }

  // REQUIRES: index < count().
  ByteView Stored(size_t index) const {
    return stored_.subspan(begins_[index], begins_[index + 1] - begins_[index]);
  }

 private:
  static constexpr size_t kCountMax =
      kBlockSizeBytesMax / kPartitionSizeBytesMin;

  ByteView stored_;
  size_t count_ = 0;
  // Where each partition begins in `stored_`, and where the last one ends.
  std::array<uint32_t, kCountMax + 1> begins_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_BLOCK_PARTITION_PARTITION_TABLE_H_
