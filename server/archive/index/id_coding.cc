// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/id_coding.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "codecs/base/endian.h"

namespace quire {
namespace {

// Codes decoded per test for escapes.
constexpr size_t kWordCodes = 8;

// True if one of eight codes is an escape, or the byte after one is 255.
bool HasEscape(uint64_t word) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  // A byte of all ones borrows when it is inverted.
  return ((~word - kOnes) & word & (kOnes << 7)) != 0;
}

// Returns up to eight bytes of a text, padded with zeros.
// REQUIRES: begin <= from <= end.
uint64_t LoadFront(const uint8_t* begin, const uint8_t* from,
                   const uint8_t* end) {
  constexpr size_t kWordSize = sizeof(uint64_t);
  const auto left = static_cast<size_t>(end - from);
  if (left >= kWordSize) [[likely]] {
    return LoadLittleEndian<uint64_t>(from);
  }
  if (static_cast<size_t>(end - begin) >= kWordSize) {
    // Its last bytes, without those before `from`: two shifts, since none may
    // remain.
    return LoadLittleEndian<uint64_t>(end - kWordSize) >>
           8 * (kWordSize - 1 - left) >> 8;
  }
  uint64_t word = 0;
  for (size_t i = left; i > 0; --i) {
    word = word << 8 | from[i - 1];
  }
  return word;
}

}  // namespace

IdOrder ComparePlainId(ByteView text, absl::string_view key) {
  const size_t size_max = std::min(text.size(), key.size());
  const size_t shared = static_cast<size_t>(
      std::mismatch(text.begin(),
                    text.begin() + static_cast<ptrdiff_t>(size_max),
                    AsBytes(key).begin())
          .first -
      text.begin());
  if (shared == text.size()) {
    return {shared == key.size() ? 0 : -1, shared};
  }
  if (shared == key.size()) {
    return {1, shared};
  }
  return {int{text[shared]} - static_cast<uint8_t>(key[shared]), shared};
}

IdCoding::IdCoding(const SymbolTable& table) {
  for (size_t code = 0; code < table.symbol_count(); ++code) {
    symbols_[code] = table.symbol(code).bytes;
    sizes_[code] = table.symbol(code).size;
  }
  for (size_t byte = 0; byte < kLiterals; ++byte) {
    symbols_[kLiterals + byte] = byte;
    sizes_[kLiterals + byte] = 1;
  }
}

IdOrder IdCoding::Compare(ByteView codes, absl::string_view key,
                          IdPlace& place) const {
  const uint8_t* const codes_begin = codes.data();
  const uint8_t* const codes_end = codes_begin + codes.size();
  const uint8_t* next = codes_begin + place.code_offset;
  const uint8_t* const key_begin = AsBytes(key).data();
  const uint8_t* const key_end = key_begin + key.size();
  const uint8_t* at = key_begin + place.key_offset;
  // Follows `at` at a distance of at least the largest symbol.
  IdPlace follower = place;
  while (next != codes_end) {
    const size_t index = Take(next);
    const uint64_t symbol = symbols_[index];
    const size_t size = sizes_[index];
    // The low bytes come first.
    const uint64_t difference = symbol ^ LoadFront(key_begin, at, key_end);
    const auto same = static_cast<size_t>(std::countr_zero(difference)) / 8;
    const auto left = static_cast<size_t>(key_end - at);
    if (same >= size && left >= size) {
      at += size;
      const auto key_offset = static_cast<size_t>(at - key_begin);
      if (key_offset >= follower.key_offset + kFsstSymbolSizeMax) {
        place = follower;
        follower = {static_cast<size_t>(next - codes_begin), key_offset};
      }
      continue;
    }
    // A key that has ended may appear to continue with zeros.
    at += std::min(same, left);
    const int order =
        same >= left ? 1
                     : int{static_cast<uint8_t>(symbol >> (8 * same))} - *at;
    return {order, static_cast<size_t>(at - key_begin)};
  }
  return {at == key_end ? 0 : -1, static_cast<size_t>(at - key_begin)};
}

char* IdCoding::Decode(ByteView codes, char* text) const {
  // Most texts have few codes, so branches dominate the cost. Always decode
  // eight codes: those after the last as escapes, which are empty.
  const uint8_t* next = codes.data();
  const uint8_t* const codes_end = next + codes.size();
  while (next < codes_end) {
    const auto word = LoadLittleEndian<uint64_t>(next);
    const auto left = static_cast<size_t>(codes_end - next);
    const uint64_t behind =
        left < kWordCodes ? ~uint64_t{0} << (8 * left) : uint64_t{0};
    if (HasEscape(word & ~behind)) {
      break;
    }
    const uint64_t live_word = word | behind;
    for (size_t i = 0; i < kWordCodes; ++i) {
      const size_t code = live_word >> (8 * i) & 0xff;
      std::memcpy(text, &symbols_[code], kFsstSymbolSizeMax);
      text += sizes_[code];
    }
    next += kWordCodes;
  }
  while (next < codes_end) {
    const size_t index = Take(next);
    std::memcpy(text, &symbols_[index], kFsstSymbolSizeMax);
    text += sizes_[index];
  }
  return text;
}

void IdCoding::DecodeFront(ByteView codes, MutableByteView out) const {
  const uint8_t* next = codes.data();
  uint8_t* place = out.data();
  uint8_t* const out_end = place + out.size();
  while (place != out_end) {
    const size_t index = Take(next);
    const auto left = static_cast<size_t>(out_end - place);
    if (left >= kFsstSymbolSizeMax) {
      std::memcpy(place, &symbols_[index], kFsstSymbolSizeMax);
      place += sizes_[index];
    } else {
      const size_t size = std::min<size_t>(sizes_[index], left);
      std::memcpy(place, &symbols_[index], size);
      place += size;
    }
  }
}

}  // namespace quire
