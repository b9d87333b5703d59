// SPDX-License-Identifier: Apache-2.0
#include "codecs/decode_memory.h"

namespace quire {
namespace {

constexpr size_t kKiB = 1 << 10;
// State of a frame decoder: tables, literals of a frame block.
constexpr size_t kFrameBytes = 256 * kKiB;
// State of liblzma, with its history of 1 MiB.
constexpr size_t kXzBytes = 1280 * kKiB;

}  // namespace

size_t PartitionScratchBytesMax(CodecId codec,
                                size_t partition_size_bytes_max) {
  const size_t block = partition_size_bytes_max;
  switch (codec) {
    case CodecId::kXz:
      return kXzBytes + block;
    case CodecId::kNumeric:
      return kFrameBytes + 3 * block;
    case CodecId::kAuto:
      // Members copy, lz4, xz, numeric and rlz.
      return kXzBytes + 2 * kFrameBytes + 6 * block;
    case CodecId::kRlzZz:
      // Streams of factors.
      return 64 * kKiB + 8 * block;
    default:
      return kFrameBytes + block;
  }
}

}  // namespace quire
