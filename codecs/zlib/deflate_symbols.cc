// SPDX-License-Identifier: Apache-2.0
//
// The hot part of DeflateDecoder: symbols to text.
#include <algorithm>
#include <cstring>

#include "absl/base/attributes.h"

#include "codecs/base/endian.h"
#include "codecs/base/instruction_set.h"
#include "codecs/zlib/deflate_bits.h"
#include "codecs/zlib/deflate_code.h"
#include "codecs/zlib/deflate_decoder.h"

namespace quire {
namespace {

constexpr size_t kMatchLengthMax = 258;
constexpr size_t kCopyStep = 16;
// Upper bounds on what one iteration of the fast loop writes: literals and a
// match, copied in steps.
constexpr size_t kTurnLiteralsMax = 4;
constexpr size_t kTurnSizeMax = kTurnLiteralsMax + kMatchLengthMax + kCopyStep;
static_assert(kTurnSizeMax <= DeflateDecoder::kFastLoopMargin);

// Copies a match within the text; may write kCopyStep - 1 bytes more than
// `length`.
inline void CopyMatchRoomy(uint8_t* to, size_t distance, size_t length) {
  const uint8_t* from = to - distance;
  uint8_t* const end = to + length;
  if (distance >= kCopyStep) {
    do {
      std::memcpy(to, from, kCopyStep);
      to += kCopyStep;
      from += kCopyStep;
    } while (to < end);
  } else if (distance >= 8) {
    do {
      std::memcpy(to, from, 8);
      to += 8;
      from += 8;
    } while (to < end);
  } else if (distance == 1) {
    std::memset(to, *from, length);
  } else {
    do {
      *to++ = *from++;
    } while (to < end);
  }
}

inline void Drop(uint32_t entry, DeflateBits& bits) {
  bits.buffer >>= DeflateEntryBits(entry);
  bits.count -= DeflateEntryBits(entry);
}

inline void TakeLiteral(uint32_t entry, DeflateBits& bits, uint8_t*& to) {
  Drop(entry, bits);
  *to++ = static_cast<uint8_t>(entry >> 16);
}

// Returns the length or distance of `entry`, including its extra bits.
inline size_t TakeValue(uint32_t entry, DeflateBits& bits) {
  const uint64_t extra = LowBits(bits.buffer, DeflateEntryBits(entry)) >>
                         DeflateEntryCodeBits(entry);
  Drop(entry, bits);
  return (entry >> 16) + static_cast<size_t>(extra);
}

// Returns the entry that the special `entry` refers to in its table.
inline uint32_t Resolve(const uint32_t* table, uint32_t entry,
                        DeflateBits& bits) {
  if ((entry & (kDeflateEndOfBlock | kDeflateInvalid)) != 0) {
    return entry;
  }
  Drop(entry, bits);
  return table[(entry >> 16) +
               LowBits(bits.buffer, DeflateEntryCodeBits(entry))];
}

// Same, without writing past `length`.
inline void CopyMatchExactly(uint8_t* to, size_t distance, size_t length) {
  const uint8_t* from = to - distance;
  for (size_t i = 0; i < length; ++i) {
    to[i] = from[i];
  }
}

}  // namespace

size_t DeflateDecoder::FastEnd() const {
  return output_.size() < kTurnSizeMax ? 0 : output_.size() - kTurnSizeMax;
}

bool DeflateDecoder::CopyFromDictionary(size_t distance, size_t length,
                                        uint8_t* to) const {
  const size_t before = distance - static_cast<size_t>(to - output_.data());
  if (before > dictionary_.size()) {
    return false;
  }
  const size_t size = std::min(length, before);
  std::copy_n(dictionary_.end() - static_cast<ptrdiff_t>(before), size, to);
  for (size_t i = size; i < length; ++i) {
    to[i] = output_[i - size];
  }
  return true;
}

// Before each iteration the buffer is filled to at least 56 bits: enough for
// four literals of the root table and a look at the next code, and enough for a
// match (20 bits for its length, 28 for its distance). The code after a match
// is looked up before the match is copied.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline DeflateDecoder::Result
DeflateDecoder::DecodeFastLoop(size_t wanted) {
  static_assert(kTurnLiteralsMax * kLengthRootBits + kLengthRootBits <= 56);
  DeflateBits bits = bits_;
  uint8_t* const begin = output_.data();
  uint8_t* to = begin + text_size_;
  const uint8_t* const stop = begin + wanted;
  const uint32_t* const lengths = length_table_.data();
  const uint32_t* const distances = distance_table_.data();
  const uint64_t length_mask = (uint64_t{1} << length_root_bits_) - 1;
  const uint64_t distance_mask = (uint64_t{1} << distance_root_bits_) - 1;
  Result result = Result::kOk;
  if (!bits.Fill()) {
    return Result::kCut;
  }
  uint32_t entry = lengths[bits.buffer & length_mask];
  while (to < stop) {
    if ((entry & kDeflateLiteral) != 0) {
      for (size_t i = 0; i < kTurnLiteralsMax; ++i) {
        TakeLiteral(entry, bits, to);
        entry = lengths[bits.buffer & length_mask];
        if ((entry & kDeflateLiteral) == 0) {
          break;
        }
      }
      if (!bits.Fill()) [[unlikely]] {
        result = Result::kCut;
        break;
      }
      if ((entry & kDeflateLiteral) != 0) {
        continue;
      }
    }
    if ((entry & kDeflateSpecial) != 0) [[unlikely]] {
      entry = Resolve(lengths, entry, bits);
      if ((entry & kDeflateSpecial) != 0) {
        Drop(entry, bits);
        result = (entry & kDeflateInvalid) != 0 ? Result::kMalformed
                                                : Result::kEndOfBlock;
        break;
      }
      if ((entry & kDeflateLiteral) != 0) {
        TakeLiteral(entry, bits, to);
        if (!bits.Fill()) {
          result = Result::kCut;
          break;
        }
        entry = lengths[bits.buffer & length_mask];
        continue;
      }
    }
    const size_t length = TakeValue(entry, bits);
    entry = distances[bits.buffer & distance_mask];
    if ((entry & kDeflateSpecial) != 0) [[unlikely]] {
      entry = Resolve(distances, entry, bits);
      if ((entry & kDeflateInvalid) != 0) {
        result = Result::kMalformed;
        break;
      }
    }
    const size_t distance = TakeValue(entry, bits);
    if (!bits.Fill()) [[unlikely]] {
      result = Result::kCut;
      break;
    }
    entry = lengths[bits.buffer & length_mask];
    if (distance > static_cast<size_t>(to - begin)) [[unlikely]] {
      if (!CopyFromDictionary(distance, length, to)) {
        result = Result::kMalformed;
        break;
      }
    } else {
      CopyMatchRoomy(to, distance, length);
    }
    to += length;
  }
  bits_ = bits;
  text_size_ = static_cast<size_t>(to - begin);
  return result;
}

DeflateDecoder::Result DeflateDecoder::DecodeFastPlain(size_t wanted) {
  return DecodeFastLoop(wanted);
}

#if defined(QUIRE_HAS_CLONES)
QUIRE_BMI2 DeflateDecoder::Result DeflateDecoder::DecodeFastBmi2(
    size_t wanted) {
  return DecodeFastLoop(wanted);
}
#else
DeflateDecoder::Result DeflateDecoder::DecodeFastBmi2(size_t wanted) {
  return DecodeFastLoop(wanted);
}
#endif

DeflateDecoder::Result DeflateDecoder::DecodeFast(size_t wanted) {
  return HasBmi2() ? DecodeFastBmi2(wanted) : DecodeFastPlain(wanted);
}

// Decodes one symbol at a time.
DeflateDecoder::Result DeflateDecoder::DecodeCarefully(size_t wanted) {
  DeflateBits bits = bits_;
  uint8_t* const begin = output_.data();
  uint8_t* const output_end = begin + output_.size();
  uint8_t* to = begin + text_size_;
  const uint64_t length_mask = (uint64_t{1} << length_root_bits_) - 1;
  const uint64_t distance_mask = (uint64_t{1} << distance_root_bits_) - 1;
  Result result = Result::kOk;
  while (static_cast<size_t>(to - begin) < wanted && !overflowed_) {
    if (!bits.Fill()) {
      result = Result::kCut;
      break;
    }
    uint32_t entry = length_table_[bits.buffer & length_mask];
    if ((entry & kDeflateSpecial) != 0) {
      entry = Resolve(length_table_.data(), entry, bits);
      if ((entry & kDeflateSpecial) != 0) {
        Drop(entry, bits);
        result = (entry & kDeflateInvalid) != 0 ? Result::kMalformed
                                                : Result::kEndOfBlock;
        break;
      }
    }
    if ((entry & kDeflateLiteral) != 0) {
      if (to == output_end) {
        overflowed_ = true;
        break;
      }
      TakeLiteral(entry, bits, to);
      continue;
    }
    size_t length = TakeValue(entry, bits);
    entry = distance_table_[bits.buffer & distance_mask];
    if ((entry & kDeflateSpecial) != 0) {
      entry = Resolve(distance_table_.data(), entry, bits);
      if ((entry & kDeflateInvalid) != 0) {
        result = Result::kMalformed;
        break;
      }
    }
    const size_t distance = TakeValue(entry, bits);
    if (length > static_cast<size_t>(output_end - to)) {
      length = static_cast<size_t>(output_end - to);
      overflowed_ = true;
    }
    if (matches_ != nullptr) {
      matches_->push_back({.offset = static_cast<uint32_t>(to - begin),
                           .size = static_cast<uint32_t>(length),
                           .distance = static_cast<uint32_t>(distance)});
    }
    if (distance <= static_cast<size_t>(to - begin)) {
      CopyMatchExactly(to, distance, length);
    } else if (!CopyFromDictionary(distance, length, to)) {
      result = Result::kMalformed;
      break;
    }
    to += length;
  }
  bits_ = bits;
  text_size_ = static_cast<size_t>(to - begin);
  return result;
}

}  // namespace quire
