// SPDX-License-Identifier: Apache-2.0
//
// The part of DeflateDecoder that takes the time: symbols to text.
#include <algorithm>
#include <cstring>

#include "codecs/base/endian.h"
#include "codecs/block/deflate_bits.h"
#include "codecs/block/deflate_code.h"
#include "codecs/block/deflate_decoder.h"

namespace quire {
namespace {

constexpr size_t kMatchLengthMax = 258;
constexpr size_t kCopyStep = 16;
// What one turn of the fast loop may write: two literals and a match, copied in
// steps.
constexpr size_t kTurnSizeMax = 2 + kMatchLengthMax + kCopyStep;
static_assert(kTurnSizeMax <= DeflateDecoder::kRoomSlack);

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

// The length or distance of `entry`, its extra bits added.
inline size_t TakeValue(uint32_t entry, DeflateBits& bits) {
  const uint64_t extra = LowBits(bits.buffer, DeflateEntryBits(entry)) >>
                         DeflateEntryCodeBits(entry);
  Drop(entry, bits);
  return (entry >> 16) + static_cast<size_t>(extra);
}

// What `entry`, which is special, stands for in its table.
inline uint32_t Resolve(const uint32_t* table, uint32_t entry,
                        DeflateBits& bits) {
  if ((entry & (kDeflateEndOfBlock | kDeflateInvalid)) != 0) {
    return entry;
  }
  Drop(entry, bits);
  return table[(entry >> 16) +
               LowBits(bits.buffer, DeflateEntryCodeBits(entry))];
}

// The same where there is no room to spare.
inline void CopyMatchExactly(uint8_t* to, size_t distance, size_t length) {
  const uint8_t* from = to - distance;
  for (size_t i = 0; i < length; ++i) {
    to[i] = from[i];
  }
}

}  // namespace

size_t DeflateDecoder::RoomyEnd() const {
  return room_.size() < kTurnSizeMax ? 0 : room_.size() - kTurnSizeMax;
}

bool DeflateDecoder::CopyFromDictionary(size_t distance, size_t length,
                                        uint8_t* to) const {
  const size_t before = distance - static_cast<size_t>(to - room_.data());
  if (before > dictionary_.size()) {
    return false;
  }
  const size_t size = std::min(length, before);
  std::copy_n(dictionary_.end() - static_cast<ptrdiff_t>(before), size, to);
  for (size_t i = size; i < length; ++i) {
    to[i] = room_[i - size];
  }
  return true;
}

// Between two turns the buffer is filled: to 56 bits or more. A length takes 20
// at most and a distance 28; so at most two literals go before them, and only
// if the buffer is filled in between.
template <bool kRoomy>
DeflateDecoder::Result DeflateDecoder::DecodeSymbols(size_t wanted) {
  DeflateBits bits = bits_;
  uint8_t* const begin = room_.data();
  uint8_t* const room_end = begin + room_.size();
  uint8_t* to = begin + text_size_;
  const uint32_t* const lengths = length_table_.data();
  const uint32_t* const distances = distance_table_.data();
  const uint64_t length_mask = (uint64_t{1} << length_root_bits_) - 1;
  const uint64_t distance_mask = (uint64_t{1} << distance_root_bits_) - 1;
  Result result = Result::kOk;
  while (static_cast<size_t>(to - begin) < wanted && (kRoomy || !overflowed_)) {
    if (!bits.Fill()) [[unlikely]] {
      return Result::kCut;
    }
    uint32_t entry = lengths[bits.buffer & length_mask];
    if (kRoomy && (entry & kDeflateLiteral) != 0) {
      TakeLiteral(entry, bits, to);
      entry = lengths[bits.buffer & length_mask];
      if ((entry & kDeflateLiteral) != 0) {
        TakeLiteral(entry, bits, to);
        entry = lengths[bits.buffer & length_mask];
      }
      if (!bits.Fill()) [[unlikely]] {
        return Result::kCut;
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
    }
    if ((entry & kDeflateLiteral) != 0) {
      if (!kRoomy && to == room_end) {
        overflowed_ = true;
        break;
      }
      TakeLiteral(entry, bits, to);
      continue;
    }
    size_t length = TakeValue(entry, bits);
    entry = distances[bits.buffer & distance_mask];
    if ((entry & kDeflateSpecial) != 0) [[unlikely]] {
      entry = Resolve(distances, entry, bits);
      if ((entry & kDeflateInvalid) != 0) {
        return Result::kMalformed;
      }
    }
    const size_t distance = TakeValue(entry, bits);
    if (!kRoomy && length > static_cast<size_t>(room_end - to)) {
      length = static_cast<size_t>(room_end - to);
      overflowed_ = true;
    }
    if (distance > static_cast<size_t>(to - begin)) [[unlikely]] {
      if (!CopyFromDictionary(distance, length, to)) {
        return Result::kMalformed;
      }
    } else if (kRoomy) {
      CopyMatchRoomy(to, distance, length);
    } else {
      CopyMatchExactly(to, distance, length);
    }
    to += length;
  }
  bits_ = bits;
  text_size_ = static_cast<size_t>(to - begin);
  return result;
}

template DeflateDecoder::Result DeflateDecoder::DecodeSymbols<true>(size_t);
template DeflateDecoder::Result DeflateDecoder::DecodeSymbols<false>(size_t);

}  // namespace quire
