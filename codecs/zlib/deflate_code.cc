// SPDX-License-Identifier: Apache-2.0
#include "codecs/zlib/deflate_code.h"

#include <algorithm>
#include <bit>

#include "codecs/base/check.h"

namespace quire {
namespace {

constexpr uint32_t kInvalid = kDeflateSpecial | kDeflateInvalid;

// Bases and extra bits are those of RFC 1951, section 3.2.5: after the first
// few symbols, each group of 4 lengths or 2 distances has one extra bit more.
constexpr std::array<uint32_t, 288> MakeLiteralAndLengthSymbols() {
  std::array<uint32_t, 288> symbols = {};
  for (uint32_t i = 0; i < 256; ++i) {
    symbols[i] = kDeflateLiteral | i << 16;
  }
  symbols[256] = kDeflateSpecial | kDeflateEndOfBlock;
  uint32_t base = 3;
  for (uint32_t i = 0; i < 28; ++i) {
    const uint32_t extra_bits = i < 8 ? 0 : i / 4 - 1;
    symbols[257 + i] = base << 16 | extra_bits;
    base += uint32_t{1} << extra_bits;
  }
  symbols[285] = uint32_t{258} << 16;
  symbols[286] = kInvalid;
  symbols[287] = kInvalid;
  return symbols;
}

constexpr std::array<uint32_t, 32> MakeDistanceSymbols() {
  std::array<uint32_t, 32> symbols = {};
  uint32_t base = 1;
  for (uint32_t i = 0; i < 30; ++i) {
    const uint32_t extra_bits = i < 4 ? 0 : i / 2 - 1;
    symbols[i] = base << 16 | extra_bits;
    base += uint32_t{1} << extra_bits;
  }
  symbols[30] = kInvalid;
  symbols[31] = kInvalid;
  return symbols;
}

constexpr std::array<uint32_t, 19> MakeCodeLengthSymbols() {
  std::array<uint32_t, 19> symbols = {};
  for (uint32_t i = 0; i < 19; ++i) {
    symbols[i] = i << 16;
  }
  return symbols;
}

constexpr std::array kLiteralAndLengthSymbols = MakeLiteralAndLengthSymbols();
constexpr std::array kDistanceSymbols = MakeDistanceSymbols();
constexpr std::array kCodeLengthSymbols = MakeCodeLengthSymbols();

uint32_t EntryFor(uint32_t symbol, unsigned code_bits) {
  return symbol + code_bits + (code_bits << 8);
}

// Codes are read from their first bit on, which is the lowest of an index: the
// table has them reversed. Returns the reversed code that follows `code` among
// those of `length` bits. After the last, all ones, returns the same again.
uint32_t NextReversed(uint32_t code, unsigned length) {
  const uint32_t zeros = ~code & ((uint32_t{1} << length) - 1);
  const uint32_t carry = std::bit_floor(zeros);
  return (code & (carry - 1)) | carry;
}

// Symbols with their codes, in order of code.
struct SortedCode {
  std::array<uint16_t, kDeflateCodeLengthMax + 1> counts = {};
  std::array<uint16_t, kDeflateSymbolCountMax> symbols;
  unsigned length_max = 0;
  size_t used = 0;
};

// False if the lengths need more codes than there are. `left` is the unused
// part of the space of codes, in codes of 15 bits.
bool SortByCode(std::span<const uint8_t> lengths, SortedCode& sorted,
                int& left) {
  for (const uint8_t length : lengths) {
    ++sorted.counts[length];
  }
  std::array<uint16_t, kDeflateCodeLengthMax + 2> place = {};
  left = 1;
  for (size_t length = 1; length <= kDeflateCodeLengthMax; ++length) {
    left = 2 * left - sorted.counts[length];
    if (left < 0) {
      return false;
    }
    if (sorted.counts[length] != 0) {
      sorted.length_max = static_cast<unsigned>(length);
    }
    place[length + 1] =
        static_cast<uint16_t>(place[length] + sorted.counts[length]);
  }
  sorted.used = place[kDeflateCodeLengthMax + 1];
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] != 0) {
      sorted.symbols[place[lengths[i]]++] = static_cast<uint16_t>(i);
    }
  }
  return true;
}

// Fills the table for codes of up to `root` bits. The table doubles with the
// length: its entries for shorter codes are valid for either next bit. Returns
// the first longer code, reversed, and its index in `sorted`.
struct RootFill {
  uint32_t code = 0;
  size_t place = 0;
};

RootFill FillRoot(const SortedCode& sorted, std::span<const uint32_t> symbols,
                  unsigned root, std::span<uint32_t> table) {
  RootFill at;
  for (unsigned length = 1; length <= root; ++length) {
    const size_t half = size_t{1} << (length - 1);
    if (length > 1) {
      std::copy_n(table.begin(), half,
                  table.begin() + static_cast<ptrdiff_t>(half));
    }
    for (unsigned i = 0; i < sorted.counts[length]; ++i) {
      table[at.code] = EntryFor(symbols[sorted.symbols[at.place++]], length);
      at.code = NextReversed(at.code, length);
    }
  }
  return at;
}

// Codes longer than the root, grouped by their first `root` bits: each group
// has its own table, sized for the longest code in it.
void FillSubtables(SortedCode& sorted, std::span<const uint32_t> symbols,
                   unsigned root, RootFill at, std::span<uint32_t> table) {
  const uint32_t root_mask = (uint32_t{1} << root) - 1;
  size_t end = size_t{1} << root;
  size_t begin = 0;
  unsigned bits = 0;
  uint32_t group = UINT32_MAX;
  for (unsigned length = root + 1; at.place < sorted.used; ++length) {
    while (sorted.counts[length] != 0) {
      if ((at.code & root_mask) != group) {
        group = at.code & root_mask;
        begin = end;
        bits = length - root;
        int left = (1 << bits) - sorted.counts[length];
        while (left > 0) {
          ++bits;
          left = 2 * left - sorted.counts[root + bits];
        }
        end = begin + (size_t{1} << bits);
        QUIRE_DCHECK(end <= table.size());
        table[group] = static_cast<uint32_t>(begin) << 16 | kDeflateSpecial |
                       bits << 8 | root;
      }
      const uint32_t entry =
          EntryFor(symbols[sorted.symbols[at.place++]], length - root);
      const size_t step = size_t{1} << (length - root);
      for (size_t i = begin + (at.code >> root); i < end; i += step) {
        table[i] = entry;
      }
      --sorted.counts[length];
      at.code = NextReversed(at.code, length);
    }
  }
}

}  // namespace

std::span<const uint32_t> DeflateLiteralAndLengthSymbols() {
  return kLiteralAndLengthSymbols;
}

std::span<const uint32_t> DeflateDistanceSymbols() {
  return kDistanceSymbols;
}

std::span<const uint32_t> DeflateCodeLengthSymbols() {
  return kCodeLengthSymbols;
}

bool BuildDeflateTable(std::span<const uint8_t> lengths,
                       std::span<const uint32_t> symbols,
                       unsigned root_bits_max, bool complete_only,
                       std::span<uint32_t> table, unsigned& root_bits) {
  QUIRE_CHECK(lengths.size() <= symbols.size());
  SortedCode sorted;
  int left = 0;
  if (!SortByCode(lengths, sorted, left)) {
    return false;
  }
  if (left > 0) {
    if (complete_only || sorted.length_max > 1) {
      return false;
    }
    root_bits = 1;
    table[0] = sorted.used == 0 ? EntryFor(kInvalid, 1)
                                : EntryFor(symbols[sorted.symbols.front()], 1);
    table[1] = EntryFor(kInvalid, 1);
    return true;
  }
  root_bits = std::min(root_bits_max, sorted.length_max);
  const RootFill at = FillRoot(sorted, symbols, root_bits, table);
  if (at.place < sorted.used) {
    FillSubtables(sorted, symbols, root_bits, at, table);
  }
  return true;
}

}  // namespace quire
