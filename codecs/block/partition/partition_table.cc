// SPDX-License-Identifier: Apache-2.0
#include "codecs/block/partition/partition_table.h"

#include <bit>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"

namespace quire {
namespace {

// Of the varint of a stored size: none reaches 2^28.
constexpr size_t kSizeFieldBytesMax = 4;

size_t WriteVarint(uint32_t value, uint8_t* to) {
  size_t size = 0;
  for (; value >= 0x80; value >>= 7) {
    to[size++] = static_cast<uint8_t>((value & 0x7F) | 0x80);
  }
  to[size++] = static_cast<uint8_t>(value);
  return size;
}

absl::Status CheckPartitionSize(uint8_t logarithm, uint32_t expected) {
  if (logarithm == std::countr_zero(expected)) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat("has partitions of 2^", logarithm,
                                          " bytes, expected 2^",
                                          std::countr_zero(expected)));
}

}  // namespace

size_t PartitionHeadSizeMax(size_t raw_size, uint32_t partition_size) {
  return 1 + kSizeFieldBytesMax * PartitionCount(raw_size, partition_size);
}

size_t WritePartitionHead(uint32_t partition_size,
                          std::span<const uint32_t> stored_sizes,
                          MutableByteView head) {
  QUIRE_CHECK(head.size() >= 1 + kSizeFieldBytesMax * stored_sizes.size());
  head[0] = static_cast<uint8_t>(std::countr_zero(partition_size));
  size_t size = 1;
  for (size_t i = 0; i + 1 < stored_sizes.size(); ++i) {
    size += WriteVarint(stored_sizes[i], &head[size]);
  }
  return size;
}

absl::Status PartitionTable::Parse(ByteView stored, size_t raw_size,
                                   uint32_t partition_size) {
  QUIRE_CHECK(raw_size > 0 && raw_size <= kBlockSizeBytesMax);
  if (stored.empty()) {
    return absl::DataLossError("has no partitions");
  }
  QUIRE_RETURN_IF_ERROR(CheckPartitionSize(stored[0], partition_size));
  count_ = PartitionCount(raw_size, partition_size);
  ByteView rest = stored.subspan(1);
  // Of partitions up to each, relative to the first; each has at least a byte,
  // so that the sum of good sizes is less than what is stored.
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
