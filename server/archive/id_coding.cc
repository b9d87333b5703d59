// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/id_coding.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace quire {
namespace {

// Up to eight bytes, padded with zeros.
uint64_t LoadFront(const uint8_t* from, const uint8_t* end) {
  uint64_t word = 0;
  if (end - from >= static_cast<ptrdiff_t>(sizeof(word))) {
    std::memcpy(&word, from, sizeof(word));
  } else {
    std::memcpy(&word, from, static_cast<size_t>(end - from));
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
    symbols_[code] = table.symbol(code);
  }
}

IdOrder IdCoding::Compare(ByteView codes, absl::string_view key) const {
  const uint8_t* next = codes.data();
  const uint8_t* const codes_end = next + codes.size();
  const uint8_t* place = AsBytes(key).data();
  const uint8_t* const key_end = place + key.size();
  while (next != codes_end) {
    const FsstSymbol symbol = Take(next);
    // The low bytes are the first.
    const uint64_t difference = symbol.bytes ^ LoadFront(place, key_end);
    const auto same = static_cast<size_t>(std::countr_zero(difference)) / 8;
    const auto left = static_cast<size_t>(key_end - place);
    if (same >= symbol.size && left >= symbol.size) {
      place += symbol.size;
      continue;
    }
    // A key that has ended may look as if it went on with zeros.
    place += std::min(same, left);
    const int order =
        same >= left
            ? 1
            : int{static_cast<uint8_t>(symbol.bytes >> (8 * same))} - *place;
    return {order, key.size() - static_cast<size_t>(key_end - place)};
  }
  return {place == key_end ? 0 : -1,
          key.size() - static_cast<size_t>(key_end - place)};
}

void IdCoding::Append(ByteView codes, std::string& text) const {
  constexpr size_t kBufferSize = 512;
  std::array<char, kBufferSize + kFsstSymbolSizeMax> buffer;
  const uint8_t* next = codes.data();
  const uint8_t* const codes_end = next + codes.size();
  while (next != codes_end) {
    size_t size = 0;
    while (next != codes_end && size < kBufferSize) {
      const FsstSymbol symbol = Take(next);
      std::memcpy(&buffer[size], &symbol.bytes, kFsstSymbolSizeMax);
      size += symbol.size;
    }
    text.append(buffer.data(), size);
  }
}

void IdCoding::DecodeFront(ByteView codes, MutableByteView out) const {
  const uint8_t* next = codes.data();
  uint8_t* place = out.data();
  uint8_t* const out_end = place + out.size();
  while (place != out_end) {
    const FsstSymbol symbol = Take(next);
    const auto left = static_cast<size_t>(out_end - place);
    if (left >= kFsstSymbolSizeMax) {
      std::memcpy(place, &symbol.bytes, kFsstSymbolSizeMax);
      place += symbol.size;
    } else {
      const size_t size = std::min<size_t>(symbol.size, left);
      std::memcpy(place, &symbol.bytes, size);
      place += size;
    }
  }
}

}  // namespace quire
