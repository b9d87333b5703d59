// SPDX-License-Identifier: Apache-2.0
//
// The sizes that precede the partitions of a payload. A payload of n partitions
// begins with
//   n - 1 varints    stored sizes of all partitions except the last
// and the partitions follow, one after the other to its end.
#ifndef QUIRE_CODECS_PAYLOAD_PARTITION_TABLE_H_
#define QUIRE_CODECS_PAYLOAD_PARTITION_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"

#include "codecs/base/bytes.h"
#include "codecs/block_codec.h"

namespace quire {

inline constexpr size_t kPartitionCountMax = 256;

// Returns the partition size of a coded text of `text_size` bytes:
// `partition_size`, or kBlockSizeBytesMax for 0, doubled until
// kPartitionCountMax partitions hold the text.
// REQUIRES: partition_size is 0 or IsPartitionSize().
size_t FittedPartitionSize(size_t text_size, uint32_t partition_size);

inline size_t PartitionCount(size_t text_size, size_t fitted_size) {
  return (text_size + fitted_size - 1) / fitted_size;
}

// Upper bound on the size of the table of `partition_count` partitions, in
// bytes.
size_t PartitionTableSizeMax(size_t partition_count);

// Writes the table of partitions of these stored sizes; returns its size.
// REQUIRES: `table` has PartitionTableSizeMax() bytes; no size is 0.
size_t WritePartitionTable(std::span<const uint32_t> stored_sizes,
                           MutableByteView table);

// Finds the partitions of one payload. Thread-compatible; allocates nothing.
class PartitionTable {
 public:
  // Reads the table at the front of `stored`, which is untrusted and must
  // outlive this object.
  // REQUIRES: 0 < count <= kPartitionCountMax.
  // Errors: DataLoss  the table is malformed, or its sizes are 0 or do not fit
  //                   `stored`.
  absl::Status Parse(ByteView stored, size_t count);

  size_t count() const { return count_; }

  // REQUIRES: index < count().
  ByteView Stored(size_t index) const {
    return stored_.subspan(begins_[index], begins_[index + 1] - begins_[index]);
  }

 private:
  ByteView stored_;
  size_t count_ = 0;
  // Offset of each partition in `stored_`, and of the end of the last.
  std::array<uint32_t, kPartitionCountMax + 1> begins_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_PAYLOAD_PARTITION_TABLE_H_
