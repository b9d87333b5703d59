// SPDX-License-Identifier: Apache-2.0
#include "codecs/auto/block_probe.h"

#include <algorithm>
#include <array>
#include <bit>

#include "codecs/base/check.h"
#include "codecs/base/endian.h"

namespace quire {
namespace {

// Minimum gain and maximum entropy of numeric blocks: more than the bias of few
// samples.
constexpr uint32_t kNumericGain = 300;
constexpr uint32_t kNumericEntropyMax = 7700;

constexpr size_t kLanes = 8;
constexpr size_t kSliceCount = 4;
constexpr size_t kSliceSize = 4 << 10;
constexpr size_t kSampleSize = kSliceCount * kSliceSize;

// Passes slices at equal distances to `take`, aligned to numbers of eight bytes
// if the block is; or the whole block if it is small.
template <typename Take>
void ForEachSlice(ByteView block, Take take) {
  if (block.size() <= kSampleSize) {
    take(block);
    return;
  }
  const size_t step = (block.size() - kSliceSize) / (kSliceCount - 1);
  for (size_t i = 0; i < kSliceCount; ++i) {
    take(block.subspan(i * step / kLanes * kLanes, kSliceSize));
  }
}

constexpr unsigned kFractionBits = 16;

// Returns log2(n) with kFractionBits fractional bits, by repeated squaring.
uint32_t FixedLog2(uint32_t n) {
  const auto whole = static_cast<unsigned>(std::bit_width(n) - 1);
  uint32_t result = whole << kFractionBits;
  // In [1, 2), with 31 fractional bits.
  uint64_t mantissa = uint64_t{n} << (31 - whole);
  for (unsigned bit = kFractionBits; bit-- > 0;) {
    mantissa = mantissa * mantissa >> 31;
    if (mantissa >> 32 != 0) {
      mantissa >>= 1;
      result |= uint32_t{1} << bit;
    }
  }
  return result;
}

// Returns n log2(n), with kFractionBits fractional bits.
uint64_t Weight(uint32_t n) {
  static const auto* const weights = [] {
    auto* const made = new std::array<uint64_t, kSampleSize + 1>();
    for (uint32_t i = 2; i <= kSampleSize; ++i) {
      (*made)[i] = uint64_t{i} * FixedLog2(i);
    }
    return made;
  }();
  return (*weights)[n];
}

using Histogram = std::array<uint32_t, 256>;
using LaneHistograms = std::array<Histogram, kLanes>;

// Returns the entropy of all bytes, in bits times 2^kFractionBits, if lanes
// that agree modulo `width` share one distribution.
uint64_t BitsOf(const LaneHistograms& lanes, size_t width) {
  uint64_t bits = 0;
  for (size_t lane = 0; lane < width; ++lane) {
    uint32_t count = 0;
    for (size_t value = 0; value < 256; ++value) {
      uint32_t n = 0;
      for (size_t i = lane; i < kLanes; i += width) {
        n += lanes[i][value];
      }
      bits -= Weight(n);
      count += n;
    }
    bits += Weight(count);
  }
  return bits;
}

}  // namespace

ByteEntropy MeasureEntropy(ByteView block) {
  QUIRE_CHECK(!block.empty());
  LaneHistograms values = {};
  // Differences at distances of 2, 4 and 8 bytes.
  std::array<LaneHistograms, 3> differences = {};
  size_t size = 0;
  ForEachSlice(block, [&](ByteView slice) {
    size += slice.size();
    for (size_t i = 0; i < slice.size(); ++i) {
      const size_t lane = i % kLanes;
      ++values[lane][slice[i]];
      for (size_t j = 0; j < differences.size(); ++j) {
        const size_t width = size_t{2} << j;
        const unsigned before = i < width ? 0 : slice[i - width];
        ++differences[j][lane][static_cast<uint8_t>(slice[i] - before)];
      }
    }
  });
  const auto per_byte = [&](uint64_t bits) {
    return static_cast<uint32_t>((bits * 1000 / size) >> kFractionBits);
  };
  uint64_t as_numbers = UINT64_MAX;
  for (size_t j = 0; j < differences.size(); ++j) {
    const size_t width = size_t{2} << j;
    as_numbers = std::min(
        {as_numbers, BitsOf(values, width), BitsOf(differences[j], width)});
  }
  return {.plain = per_byte(BitsOf(values, 1)),
          .as_numbers = per_byte(as_numbers)};
}

bool LooksNumeric(const ByteEntropy& entropy) {
  return entropy.as_numbers + kNumericGain <= entropy.plain &&
         entropy.as_numbers <= kNumericEntropyMax;
}

namespace {

uint64_t HashPiece(const uint8_t* piece) {
  const uint64_t a = LoadLittleEndian<uint64_t>(piece);
  const uint64_t b = LoadLittleEndian<uint64_t>(piece + 8);
  uint64_t hash = (a ^ std::rotl(b, 29)) * 0x9E3779B97F4A7C15;
  hash ^= hash >> 32;
  hash = (hash + b) * 0xD6E8FEB86659FD93;
  return hash ^ hash >> 32;
}

// Four bits of a word.
uint64_t MaskOf(uint64_t hash) {
  return uint64_t{1} << (hash & 63) | uint64_t{1} << (hash >> 6 & 63) |
         uint64_t{1} << (hash >> 12 & 63) | uint64_t{1} << (hash >> 18 & 63);
}

}  // namespace

DictionaryFilter::DictionaryFilter(ByteView dictionary)
    // Two bits per byte of dictionary, so that at most one bit in eight is set.
    : words_(std::bit_ceil(dictionary.size() / 32 + 1)) {
  for (size_t i = 0; i + kPieceSize <= dictionary.size(); i += kPieceSize) {
    const uint64_t hash = HashPiece(&dictionary[i]);
    words_[(hash >> 32) & (words_.size() - 1)] |= MaskOf(hash);
  }
}

bool DictionaryFilter::Contains(const uint8_t* piece) const {
  const uint64_t hash = HashPiece(piece);
  const uint64_t mask = MaskOf(hash);
  return (words_[(hash >> 32) & (words_.size() - 1)] & mask) == mask;
}

uint32_t DictionaryFilter::SharePerMille(ByteView block) const {
  uint64_t found = 0;
  uint64_t size = 0;
  ForEachSlice(block, [&](ByteView slice) {
    // A common part contains one piece for each sixteen of its bytes.
    size_t next = 0;
    for (size_t i = 0; i + kPieceSize <= slice.size(); ++i) {
      if (i >= next && Contains(&slice[i])) {
        ++found;
        next = i + kPieceSize;
      }
    }
    size += slice.size();
  });
  return size == 0 ? 0
                   : static_cast<uint32_t>(std::min<uint64_t>(
                         1000, 1000 * kPieceSize * found / size));
}

}  // namespace quire
