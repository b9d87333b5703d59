// SPDX-License-Identifier: GPL-3.0-or-later
//
// How the bytes of document ids are kept in RAM: as FSST codes of a table that
// was trained on them ("FSST: Fast Random Access String Compression"), or as
// they are.
#ifndef QUIRE_SERVER_ARCHIVE_ID_CODING_H_
#define QUIRE_SERVER_ARCHIVE_ID_CODING_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/fsst/symbol_table.h"

namespace quire {

// How a text compares with a key.
struct IdOrder {
  // Below zero if the text is below the key, zero if they are equal; bytewise.
  int order = 0;
  // Leading bytes that both have.
  size_t shared_size_bytes = 0;
};

// Compares a text that is kept as it is.
IdOrder ComparePlainId(ByteView text, absl::string_view key);

// Reads texts that were encoded with one table, and no more of them than is
// asked for.
// Codes are trusted: they must be what an encoder with this table made. That,
// and texts of a few codes, is why ids are not read by FsstDecoder, which
// checks everything. Immutable, hence thread-safe. 4 KB.
class IdCoding {
 public:
  explicit IdCoding(const SymbolTable& table);

  // Goes by symbols, and no further than the first byte that differs.
  IdOrder Compare(ByteView codes, absl::string_view key) const;

  // Decodes all to the end of `text`.
  void Append(ByteView codes, std::string& text) const;

  // Decodes the first `out.size()` bytes, of which there must be as many.
  void DecodeFront(ByteView codes, MutableByteView out) const;

 private:
  // The symbol at `codes`, which are moved on.
  FsstSymbol Take(const uint8_t*& codes) const {
    const uint8_t code = *codes++;
    return code == kFsstEscape ? FsstSymbol{.bytes = *codes++, .size = 1}
                               : symbols_[code];
  }

  std::array<FsstSymbol, kFsstSymbolCountMax> symbols_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_ID_CODING_H_
