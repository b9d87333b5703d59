// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/table/symbol_table.h"

#include <algorithm>
#include <bitset>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr uint8_t kByteOrderMark = 1;
constexpr uint32_t kVersion = 20190218;
constexpr uint8_t kZeroTerminatedFlag = 1;
constexpr size_t kHistogramOffset = 9;
constexpr size_t kSymbolsOffset = kHistogramOffset + kFsstSymbolSizeMax;
static_assert(kSymbolsOffset + kFsstSymbolCountMax * kFsstSymbolSizeMax ==
              kSerialisedSymbolTableSizeMax);

// In order of codes.
constexpr std::array<uint8_t, kFsstSymbolSizeMax> kSizesInOrder = {2, 3, 4, 5,
                                                                   6, 7, 8, 1};

// Symbol counts by size, 1 to 8 bytes: element i is for size i + 1.
using Histogram = std::array<uint8_t, kFsstSymbolSizeMax>;

bool HasZero(const FsstSymbol& symbol) {
  for (size_t i = 0; i < symbol.size; ++i) {
    if ((symbol.bytes >> (8 * i) & 0xff) == 0) {
      return true;
    }
  }
  return false;
}

absl::Status CheckSymbol(const FsstSymbol& symbol) {
  if (symbol.size < 1 || symbol.size > kFsstSymbolSizeMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a symbol of ", symbol.size, " bytes"));
  }
  if (symbol.size < 8 && symbol.bytes >> (8 * symbol.size) != 0) {
    return absl::InvalidArgumentError("bytes behind a symbol's end");
  }
  return absl::OkStatus();
}

// True for two bytes that begin a longer symbol.
std::bitset<size_t{1} << 16> ExtendedPairs(
    std::span<const FsstSymbol> symbols) {
  std::bitset<size_t{1} << 16> is_extended;
  for (const FsstSymbol& symbol : symbols) {
    if (symbol.size > 2) {
      is_extended.set(symbol.bytes & 0xffff);
    }
  }
  return is_extended;
}

// Returns the lowest byte that no symbol of two bytes or more contains; 0 if
// there is none.
uint8_t FindTerminator(std::span<const FsstSymbol> symbols) {
  std::bitset<256> is_used;
  for (const FsstSymbol& symbol : symbols) {
    for (size_t i = 0; symbol.size > 1 && i < symbol.size; ++i) {
      is_used.set(symbol.bytes >> (8 * i) & 0xff);
    }
  }
  size_t byte = 0;
  while (byte < 256 && is_used[byte]) {
    ++byte;
  }
  return static_cast<uint8_t>(byte % 256);
}

bool HasTwins(std::vector<FsstSymbol> symbols) {
  const auto key = [](const FsstSymbol& symbol) {
    return std::pair(symbol.bytes, symbol.size);
  };
  std::sort(symbols.begin(), symbols.end(),
            [&](const FsstSymbol& a, const FsstSymbol& b) {
              return key(a) < key(b);
            });
  return std::adjacent_find(symbols.begin(), symbols.end()) != symbols.end();
}

// Everything before the symbols.
struct Header {
  uint8_t terminator = 0;
  uint8_t suffix_limit = 0;
  bool zero_terminated = false;
  Histogram histogram = {};
  size_t symbol_count = 0;
  size_t symbols_size_bytes = 0;
};

absl::StatusOr<Header> ParseHeader(ByteView bytes) {
  if (bytes.size() < kSymbolsOffset) {
    return absl::DataLossError(absl::StrCat("a symbol table of ", bytes.size(),
                                            " bytes has no whole header"));
  }
  if (bytes[0] != kByteOrderMark) {
    return absl::DataLossError("a symbol table of unknown byte order");
  }
  const auto version = LoadLittleEndian<uint32_t>(&bytes[4]);
  if (version != kVersion) {
    return absl::DataLossError(
        absl::StrCat("a symbol table of unknown version ", version));
  }
  if ((bytes[8] & ~kZeroTerminatedFlag) != 0) {
    return absl::DataLossError("a symbol table with unknown flags");
  }
  Header header = {.terminator = bytes[2],
                   .suffix_limit = bytes[3],
                   .zero_terminated = bytes[8] == kZeroTerminatedFlag};
  for (size_t i = 0; i < kFsstSymbolSizeMax; ++i) {
    header.histogram[i] = bytes[kHistogramOffset + i];
    header.symbol_count += header.histogram[i];
    header.symbols_size_bytes += (i + 1) * header.histogram[i];
  }
  if (header.symbol_count > kFsstSymbolCountMax) {
    return absl::DataLossError(absl::StrCat("a symbol table counts ",
                                            header.symbol_count, " symbols"));
  }
  if (header.symbol_count != bytes[1]) {
    return absl::DataLossError(absl::StrCat("a symbol table names ", bytes[1],
                                            " symbols but counts ",
                                            header.symbol_count));
  }
  if (header.zero_terminated && header.histogram[0] == 0) {
    return absl::DataLossError(
        "a zero-terminated symbol table without a symbol of one byte");
  }
  header.symbols_size_bytes -= header.zero_terminated ? 1 : 0;
  return header;
}

}  // namespace

absl::StatusOr<SymbolTable> SymbolTable::FromSymbols(
    std::span<const FsstSymbol> symbols, bool zero_terminated) {
  std::vector<FsstSymbol> sorted;
  sorted.reserve(symbols.size());
  for (const FsstSymbol& symbol : symbols) {
    QUIRE_RETURN_IF_ERROR(CheckSymbol(symbol));
    if (zero_terminated && HasZero(symbol)) {
      if (symbol.size > 1) {
        return absl::InvalidArgumentError(
            "00 in a longer symbol of a zero-terminated table");
      }
      continue;  // Code 0 is not written.
    }
    sorted.push_back(symbol);
  }
  const size_t first = zero_terminated ? 1 : 0;
  if (sorted.size() + first > kFsstSymbolCountMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(sorted.size() + first, " symbols"));
  }
  if (HasTwins(sorted)) {
    return absl::InvalidArgumentError("a symbol twice");
  }

  // The published order: 2 to 8 bytes, then 1; among two bytes first the
  // symbols that no other extends.
  SymbolTable table;
  const auto is_extended = ExtendedPairs(sorted);
  const auto order = [&](const FsstSymbol& symbol) {
    return std::pair((symbol.size + 6) % kFsstSymbolSizeMax,
                     symbol.size == 2 && is_extended[symbol.bytes]);
  };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const FsstSymbol& a, const FsstSymbol& b) {
                     return order(a) < order(b);
                   });
  if (zero_terminated) {
    table.symbols_[0] = {.bytes = 0, .size = 1};
  }
  std::copy(sorted.begin(), sorted.end(),
            table.symbols_.begin() + (zero_terminated ? 1 : 0));
  table.symbol_count_ = static_cast<uint8_t>(first + sorted.size());
  table.zero_terminated_ = zero_terminated;
  table.terminator_ = zero_terminated ? 0 : FindTerminator(sorted);
  const auto alone =
      std::find_if(sorted.begin(), sorted.end(), [&](const FsstSymbol& symbol) {
        return symbol.size != 2 || is_extended[symbol.bytes];
      });
  table.suffix_limit_ =
      static_cast<uint8_t>(first + static_cast<size_t>(alone - sorted.begin()));
  return table;
}

absl::StatusOr<SymbolTable> SymbolTable::ParsePrefix(ByteView bytes,
                                                     size_t* size_bytes) {
  QUIRE_ASSIGN_OR_RETURN(const Header header, ParseHeader(bytes));
  if (bytes.size() - kSymbolsOffset < header.symbols_size_bytes) {
    return absl::DataLossError(absl::StrCat(
        "a symbol table of ", bytes.size(), " bytes has symbols of ",
        header.symbols_size_bytes, " bytes behind its header"));
  }
  SymbolTable table;
  table.symbol_count_ = static_cast<uint8_t>(header.symbol_count);
  table.terminator_ = header.terminator;
  table.suffix_limit_ = header.suffix_limit;
  table.zero_terminated_ = header.zero_terminated;
  Histogram stored = header.histogram;
  size_t code = 0;
  if (header.zero_terminated) {
    table.symbols_[code++] = {.bytes = 0, .size = 1};
    --stored[0];
  }
  size_t offset = kSymbolsOffset;
  for (const uint8_t size : kSizesInOrder) {
    for (size_t i = 0; i < stored[size - 1U]; ++i) {
      FsstSymbol& symbol = table.symbols_[code++];
      symbol.size = size;
      for (size_t k = 0; k < size; ++k) {
        symbol.bytes |= uint64_t{bytes[offset + k]} << (8 * k);
      }
      offset += size;
    }
  }
  *size_bytes = offset;
  return table;
}

absl::StatusOr<SymbolTable> SymbolTable::Parse(ByteView serialised) {
  size_t size_bytes = 0;
  QUIRE_ASSIGN_OR_RETURN(SymbolTable table,
                         ParsePrefix(serialised, &size_bytes));
  if (size_bytes != serialised.size()) {
    return absl::DataLossError(
        absl::StrCat(serialised.size() - size_bytes,
                     " bytes are left over behind a symbol table"));
  }
  return table;
}

std::string SymbolTable::Serialise() const {
  std::string bytes(kSymbolsOffset, '\0');
  uint8_t* const header = AsMutableBytes(bytes).data();
  header[0] = kByteOrderMark;
  header[1] = symbol_count_;
  header[2] = terminator_;
  header[3] = suffix_limit_;
  StoreLittleEndian(kVersion, &header[4]);
  header[8] = zero_terminated_ ? kZeroTerminatedFlag : 0;
  for (size_t code = 0; code < symbol_count_; ++code) {
    ++header[kHistogramOffset + symbols_[code].size - 1];
  }
  for (size_t code = zero_terminated_ ? 1 : 0; code < symbol_count_; ++code) {
    for (size_t i = 0; i < symbols_[code].size; ++i) {
      bytes.push_back(static_cast<char>(symbols_[code].bytes >> (8 * i)));
    }
  }
  return bytes;
}

}  // namespace quire
