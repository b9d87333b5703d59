// SPDX-License-Identifier: Apache-2.0
#include "codecs/payload/partition_table.h"

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"

namespace quire {
namespace {

// Size of the varint of a stored size, which is below 2^28.
constexpr size_t kSizeFieldBytesMax = 4;

size_t WriteVarint(uint32_t value, uint8_t* to) {
  size_t size = 0;
  for (; value >= 0x80; value >>= 7) {
    to[size++] = static_cast<uint8_t>((value & 0x7F) | 0x80);
  }
  to[size++] = static_cast<uint8_t>(value);
  return size;
}

}  // namespace

size_t FittedPartitionSize(size_t text_size, uint32_t partition_size) {
  size_t size = partition_size == 0 ? kBlockSizeBytesMax : partition_size;
  while (PartitionCount(text_size, size) > kPartitionCountMax) {
    size *= 2;
  }
  return size;
}

size_t PartitionTableSizeMax(size_t partition_count) {
  return kSizeFieldBytesMax * (partition_count - 1);
}

size_t WritePartitionTable(std::span<const uint32_t> stored_sizes,
                           MutableByteView table) {
  QUIRE_CHECK(table.size() >= PartitionTableSizeMax(stored_sizes.size()));
  size_t size = 0;
  for (size_t i = 0; i + 1 < stored_sizes.size(); ++i) {
    size += WriteVarint(stored_sizes[i], &table[size]);
  }
  return size;
}

absl::Status PartitionTable::Parse(ByteView stored, size_t count) {
  QUIRE_CHECK(count > 0 && count <= kPartitionCountMax);
  count_ = count;
  ByteView rest = stored;
  // Each partition has at least a byte, so that the sum of valid sizes is less
  // than the size of `stored`.
  uint64_t end = 0;
  begins_[0] = 0;
  for (size_t i = 0; i + 1 < count_; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const uint64_t size, TakeVarint(rest));
    if (size == 0 || size >= stored.size() - end) {
      return absl::DataLossError(absl::StrCat("partition ", i, " claims ", size,
                                              " stored bytes, with ",
                                              stored.size() - end, " left"));
    }
    end += size;
    begins_[i + 1] = static_cast<uint32_t>(end);
  }
  if (end >= rest.size()) {
    return absl::DataLossError(
        absl::StrCat("has ", rest.size(), " bytes of partitions, expected more",
                     " than ", end));
  }
  stored_ = rest;
  begins_[count_] = static_cast<uint32_t>(rest.size());
  return absl::OkStatus();
}

}  // namespace quire
