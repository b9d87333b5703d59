// SPDX-License-Identifier: GPL-3.0-or-later
//
// The form of document ids in RAM: FSST codes of a table that was trained on
// them ("FSST: Fast Random Access String Compression"), or plain bytes.
#ifndef QUIRE_SERVER_ARCHIVE_INDEX_ID_CODING_H_
#define QUIRE_SERVER_ARCHIVE_INDEX_ID_CODING_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/fsst/table/symbol_table.h"

namespace quire {

// Result of comparing a text with a key.
struct IdOrder {
  // Negative if the text is below the key, zero if they are equal; bytewise.
  int order = 0;
  // Number of leading bytes that both share.
  size_t shared_size_bytes = 0;
};

// Compares a plain text.
IdOrder ComparePlainId(ByteView text, absl::string_view key);

// Bytes of any value that must be readable after a text of codes.
inline constexpr size_t kIdCodesPadding = 8;

// A position between codes of a text, and in the compared bytes.
struct IdPlace {
  size_t code_offset = 0;
  size_t key_offset = 0;
};

// Reads texts encoded with one table, as far as requested. Codes are trusted:
// an encoder with this table must have made them. Therefore, and because texts
// have few codes, ids are not read by FsstDecoder, which checks everything.
// Immutable, hence thread-safe. 5 KB.
class IdCoding {
 public:
  explicit IdCoding(const SymbolTable& table);

  // Compares from `place` on: the codes from `place.code_offset` with the key
  // from `place.key_offset`, which counts as shared. Compares symbols up to the
  // first byte that differs.
  //
  // Advances `place` to the first codes that may depend on that byte. An
  // encoder looks ahead at most the largest symbol. All texts that share as
  // much with the key, and were encoded whole, therefore have the same codes
  // before `place` and may be compared from there.
  IdOrder Compare(ByteView codes, absl::string_view key, IdPlace& place) const;

  // Decodes all codes to `text`; returns its end. REQUIRES: kIdCodesPadding
  // readable bytes after the codes; space for DecodedSizeMax(codes.size()).
  char* Decode(ByteView codes, char* text) const;

  // Upper bound on the decoded size of `codes_size` bytes of codes, including
  // excess writes.
  static constexpr size_t DecodedSizeMax(size_t codes_size) {
    return kFsstSymbolSizeMax * (codes_size + 1);
  }

  // Decodes the first `out.size()` bytes. REQUIRES: the text has as many.
  void DecodeFront(ByteView codes, MutableByteView out) const;

 private:
  // Bytes after an escape are looked up like codes, at this offset.
  static constexpr size_t kLiterals = 256;

  // Returns the index of the symbol at `codes` and advances them. The branch is
  // well predicted: escapes are rare.
  static size_t Take(const uint8_t*& codes) {
    const uint8_t code = *codes++;
    if (code == kFsstEscape) [[unlikely]] {
      return *codes++ + kLiterals;
    }
    return code;
  }

  // By code, the first byte of a symbol lowest; empty for an escape. Then the
  // literals.
  std::array<uint64_t, 2 * kLiterals> symbols_ = {};
  std::array<uint8_t, 2 * kLiterals> sizes_ = {};
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_INDEX_ID_CODING_H_
