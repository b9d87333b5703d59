// SPDX-License-Identifier: GPL-3.0-or-later
//
// How the bytes of document ids are kept in RAM: as FSST codes of a table that
// was trained on them ("FSST: Fast Random Access String Compression"), or as
// they are.
#ifndef QUIRE_SERVER_ARCHIVE_INDEX_ID_CODING_H_
#define QUIRE_SERVER_ARCHIVE_INDEX_ID_CODING_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/fsst/table/symbol_table.h"

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

// So many bytes behind a text of codes may be read, whatever they are.
inline constexpr size_t kIdCodesPadding = 8;

// A place between codes of a text, and where that is in what is compared.
struct IdPlace {
  size_t code_offset = 0;
  size_t key_offset = 0;
};

// Reads texts that were encoded with one table, and no more of them than is
// asked for.
// Codes are trusted: they must be what an encoder with this table made. That,
// and texts of a few codes, is why ids are not read by FsstDecoder, which
// checks everything. Immutable, hence thread-safe. 5 KB.
class IdCoding {
 public:
  explicit IdCoding(const SymbolTable& table);

  // Compares from `place` on: the codes from `place.code_offset`, with what the
  // key has from `place.key_offset` on, which is counted as shared. Goes by
  // symbols, and no further than the first byte that differs.
  //
  // Moves `place` on to where codes begin that may depend on that byte. An
  // encoder chooses a symbol by as many bytes as symbols have at most, so all
  // texts that share with the key what this one does, and were encoded whole,
  // have the same codes before `place`; and may be compared from there.
  IdOrder Compare(ByteView codes, absl::string_view key, IdPlace& place) const;

  // Decodes all to `text`; returns its end. REQUIRES: kIdCodesPadding bytes
  // behind the codes; space for DecodedSizeMax(codes.size()).
  char* Decode(ByteView codes, char* text) const;

  // What `codes_size` bytes of codes are decoded to, and what is written behind
  // that.
  static constexpr size_t DecodedSizeMax(size_t codes_size) {
    return kFsstSymbolSizeMax * (codes_size + 1);
  }

  // Decodes the first `out.size()` bytes, of which there must be as many.
  void DecodeFront(ByteView codes, MutableByteView out) const;

 private:
  // Bytes behind an escape are looked up like codes, this much higher.
  static constexpr size_t kLiterals = 256;

  // The index of the symbol at `codes`, which are moved on. By a branch, which
  // is foretold: escapes are rare, and nothing waits for the code.
  static size_t Take(const uint8_t*& codes) {
    const uint8_t code = *codes++;
    if (code == kFsstEscape) [[unlikely]] {
      return *codes++ + kLiterals;
    }
    return code;
  }

  // By code, the first byte of a symbol lowest; nothing for an escape. Then the
  // literals.
  std::array<uint64_t, 2 * kLiterals> symbols_ = {};
  std::array<uint8_t, 2 * kLiterals> sizes_ = {};
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_INDEX_ID_CODING_H_
