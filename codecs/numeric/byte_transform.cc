// SPDX-License-Identifier: Apache-2.0
#include "codecs/numeric/byte_transform.h"

#include <algorithm>
#include <array>
#include <utility>

#include "codecs/base/check.h"
#include "codecs/base/endian.h"

namespace quire {
namespace {

constexpr size_t kGroup = 8;

template <size_t kWidth>
void Shuffle(const uint8_t* from, size_t count, uint8_t* to) {
  for (size_t i = 0; i < count; ++i) {
    for (size_t plane = 0; plane < kWidth; ++plane) {
      to[plane * count + i] = from[i * kWidth + plane];
    }
  }
}

// Separate pointers to the planes let compilers vectorise the inner loop.
template <size_t kWidth, size_t... kPlanes>
void Interleave(const uint8_t* __restrict from, size_t count,
                uint8_t* __restrict to, std::index_sequence<kPlanes...>) {
  const std::array<const uint8_t*, kWidth> planes = {
      (from + kPlanes * count)...};
  for (size_t i = 0; i < count; ++i) {
    ((to[i * kWidth + kPlanes] = planes[kPlanes][i]), ...);
  }
}

template <size_t kWidth>
void Unshuffle(const uint8_t* from, size_t count, uint8_t* to) {
  Interleave<kWidth>(from, count, to, std::make_index_sequence<kWidth>());
}

void ShuffleWidth(size_t width, const uint8_t* from, size_t count,
                  uint8_t* to) {
  switch (width) {
    case 2:
      return Shuffle<2>(from, count, to);
    case 4:
      return Shuffle<4>(from, count, to);
    default:
      return Shuffle<8>(from, count, to);
  }
}

void UnshuffleWidth(size_t width, const uint8_t* from, size_t count,
                    uint8_t* to) {
  switch (width) {
    case 2:
      return Unshuffle<2>(from, count, to);
    case 4:
      return Unshuffle<4>(from, count, to);
    default:
      return Unshuffle<8>(from, count, to);
  }
}

void Difference(MutableByteView plane) {
  uint8_t before = 0;
  for (uint8_t& byte : plane) {
    const uint8_t now = byte;
    byte = static_cast<uint8_t>(now - before);
    before = now;
  }
}

// Eight prefix sums at once: multiplying by 0x01.. adds the lower bytes to each
// byte. Bytes must not carry into each other, so odd and even ones are summed
// separately, in halves of 16 bits.
void Sum(MutableByteView plane) {
  uint8_t before = 0;
  size_t i = 0;
  constexpr uint64_t kLow = 0x00FF00FF00FF00FF;
  constexpr uint64_t kOnes = 0x0001000100010001;
  for (; i + kGroup <= plane.size(); i += kGroup) {
    const uint64_t word = LoadLittleEndian<uint64_t>(&plane[i]);
    // Sums of the even bytes up to each, likewise of the odd ones; 16 bits hold
    // four.
    const uint64_t even = (word & kLow) * kOnes;
    const uint64_t odd = (word >> 8 & kLow) * kOnes;
    const uint64_t start = before * kOnes;
    const uint64_t at_even = (even + (odd << 16) + start) & kLow;
    const uint64_t at_odd = (even + odd + start) & kLow;
    const uint64_t sums = at_even | at_odd << 8;
    StoreLittleEndian(sums, &plane[i]);
    before = static_cast<uint8_t>(sums >> 56);
  }
  for (; i < plane.size(); ++i) {
    before = static_cast<uint8_t>(before + plane[i]);
    plane[i] = before;
  }
}

// Transposes the 8 x 8 bits of a word ("Hacker's Delight", 7-3).
uint64_t Transpose(uint64_t bits) {
  uint64_t swap = (bits ^ (bits >> 7)) & 0x00AA00AA00AA00AA;
  bits ^= swap ^ (swap << 7);
  swap = (bits ^ (bits >> 14)) & 0x0000CCCC0000CCCC;
  bits ^= swap ^ (swap << 14);
  swap = (bits ^ (bits >> 28)) & 0x00000000F0F0F0F0;
  return bits ^ swap ^ (swap << 28);
}

// REQUIRES: plane.size() is divisible by 8.
void SplitBits(ByteView plane, uint8_t* to) {
  const size_t count = plane.size() / kGroup;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bits =
        Transpose(LoadLittleEndian<uint64_t>(&plane[i * kGroup]));
    for (size_t bit = 0; bit < kGroup; ++bit) {
      to[bit * count + i] = static_cast<uint8_t>(bits >> (8 * bit));
    }
  }
}

void JoinBits(ByteView planes, uint8_t* to) {
  const size_t count = planes.size() / kGroup;
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    for (size_t bit = 0; bit < kGroup; ++bit) {
      bits |= uint64_t{planes[bit * count + i]} << (8 * bit);
    }
    StoreLittleEndian(Transpose(bits), &to[i * kGroup]);
  }
}

void CheckShape(const ByteTransform& transform, ByteView from, ByteView to) {
  const uint8_t width = transform.width;
  QUIRE_CHECK(from.size() == to.size());
  QUIRE_CHECK(transform.kind == TransformKind::kNone
                  ? width == 1
                  : width == 2 || width == 4 || width == 8);
}

}  // namespace

void ApplyTransform(const ByteTransform& transform, ByteView from,
                    MutableByteView work, MutableByteView to) {
  CheckShape(transform, from, to);
  QUIRE_CHECK(work.size() >= from.size());
  if (transform.kind == TransformKind::kNone) {
    std::ranges::copy(from, to.begin());
    return;
  }
  const size_t width = transform.width;
  const size_t count = from.size() / (width * kGroup) * kGroup;
  const size_t size = count * width;
  std::ranges::copy(from.subspan(size), to.subspan(size).begin());
  const bool splits_bits = transform.kind == TransformKind::kBitShuffle;
  ShuffleWidth(width, from.data(), count,
               splits_bits ? work.data() : to.data());
  for (size_t plane = 0; plane < width; ++plane) {
    if (splits_bits) {
      SplitBits(work.subspan(plane * count, count), to.data() + plane * count);
    } else if (transform.kind == TransformKind::kShuffleDelta) {
      Difference(to.subspan(plane * count, count));
    }
  }
}

void UndoTransform(const ByteTransform& transform, MutableByteView from,
                   MutableByteView to) {
  CheckShape(transform, from, to);
  if (transform.kind == TransformKind::kNone) {
    std::ranges::copy(from, to.begin());
    return;
  }
  const size_t width = transform.width;
  const size_t count = from.size() / (width * kGroup) * kGroup;
  const size_t size = count * width;
  std::ranges::copy(from.subspan(size), to.subspan(size).begin());
  if (transform.kind == TransformKind::kBitShuffle) {
    // Undo each plane into `to` and copy it back; then interleave.
    for (size_t plane = 0; plane < width; ++plane) {
      const MutableByteView bits = from.subspan(plane * count, count);
      JoinBits(bits, to.data());
      std::copy_n(to.data(), count, bits.data());
    }
  } else if (transform.kind == TransformKind::kShuffleDelta) {
    for (size_t plane = 0; plane < width; ++plane) {
      Sum(from.subspan(plane * count, count));
    }
  }
  UnshuffleWidth(width, from.data(), count, to.data());
}

}  // namespace quire
