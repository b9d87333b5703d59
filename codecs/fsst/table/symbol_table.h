// SPDX-License-Identifier: Apache-2.0
//
// A static symbol table: up to 255 strings of 1 to 8 bytes, each with a code of
// one byte. It is all the state that FSST has (P. Boncz, T. Neumann, V. Leis,
// "FSST: Fast Random Access String Compression", PVLDB 13, sections 3 and 3.2):
// a holder of the table decodes any string that was encoded with it, alone.
//
// Tables travel in the form that the authors' library exports, byte for byte:
//
//   offset  size  meaning
//        0     1  1 (marks the byte order)
//        1     1  number of symbols, 0 to 255
//        2     1  terminator: a byte in no symbol of two bytes or more
//        3     1  suffix limit: codes below it are symbols of two bytes that
//                 begin no longer symbol (or code 0, if zero-terminated)
//        4     4  version, 20190218, little endian
//        8     1  1 if zero-terminated, else 0
//        9     8  number of symbols of 1, 2, ... 8 bytes
//       17     n  the symbols, one after the other
//
// Codes count from 0 over the symbols of 2, 3, ... 8 bytes, then over those of
// one byte. In a zero-terminated table code 0 is the byte 00: it counts as a
// symbol of one byte but is not written, and the others begin at 1. Terminator
// and suffix limit serve encoders only; Quire's does not use them.
#ifndef QUIRE_CODECS_FSST_TABLE_SYMBOL_TABLE_H_
#define QUIRE_CODECS_FSST_TABLE_SYMBOL_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"

namespace quire {

// The code before a literal byte (section 3.2).
inline constexpr uint8_t kFsstEscape = 255;
inline constexpr size_t kFsstSymbolCountMax = 255;
inline constexpr size_t kFsstSymbolSizeMax = 8;
// Texts are cut into pieces of this many bytes; no symbol crosses a cut
// (section 5.4). It also bounds the decoded size of a string on the wire.
inline constexpr size_t kFsstStringSizeMax = 511;
inline constexpr size_t kSerialisedSymbolTableSizeMax = 2057;

struct FsstSymbol {
  // First byte lowest, zeros after the last.
  uint64_t bytes = 0;
  // 1 to 8.
  uint8_t size = 0;

  bool operator==(const FsstSymbol&) const = default;
};

// Immutable and copyable, 4 KB. Thread-safe.
class SymbolTable {
 public:
  // A table without symbols: every byte is escaped.
  SymbolTable() = default;

  // Returns a table of these symbols, with codes in the published order.
  // Symbols of one size keep their order, except that those below the suffix
  // limit come first. A zero-terminated table is for texts that end in 00 and
  // contain no other. Its code 0 is the byte 00, listed or not; it has space
  // for 254 other symbols.
  //
  // Accepts any set of symbols. The authors' library decodes with any table. It
  // encodes only if some byte is in no symbol of two bytes or more, and all
  // symbols of three or more have different slots in its hash table.
  // Errors: InvalidArgument  too many symbols, a size that is not 1 to 8,
  //                          nonzero bytes after the end of a symbol, a
  //                          duplicate symbol, or 00 in a longer symbol of a
  //                          zero-terminated table.
  static absl::StatusOr<SymbolTable> FromSymbols(
      std::span<const FsstSymbol> symbols, bool zero_terminated = false);

  // Reads a table that fills all of `serialised`.
  // Errors: DataLoss  names the error: unknown byte order, version or flags;
  //                   number of symbols not the sum of the counts;
  //                   zero-terminated without a symbol of one byte; truncated;
  //                   excess bytes.
  static absl::StatusOr<SymbolTable> Parse(ByteView serialised);

  // Reads a table at the front of `bytes` and sets its size.
  // Errors: DataLoss  as Parse, except that excess bytes are allowed.
  static absl::StatusOr<SymbolTable> ParsePrefix(ByteView bytes,
                                                 size_t* size_bytes);

  // Returns 17 to kSerialisedSymbolTableSizeMax bytes; for a parsed table
  // exactly the bytes that Parse read.
  std::string Serialise() const;

  size_t symbol_count() const { return symbol_count_; }

  // REQUIRES: code < symbol_count().
  const FsstSymbol& symbol(size_t code) const { return symbols_[code]; }

  bool zero_terminated() const { return zero_terminated_; }

  bool operator==(const SymbolTable&) const = default;

 private:
  std::array<FsstSymbol, kFsstSymbolCountMax> symbols_;
  uint8_t symbol_count_ = 0;
  uint8_t terminator_ = 0;
  uint8_t suffix_limit_ = 0;
  bool zero_terminated_ = false;
};

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_TABLE_SYMBOL_TABLE_H_
