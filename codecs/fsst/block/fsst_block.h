// SPDX-License-Identifier: Apache-2.0
//
// A block of text as FSST strings, with marks where each begins: any range is
// found, then copied as codes or decoded without the rest ("FSST: Fast Random
// Access String Compression", section 2: random access). One layout for three
// uses: storage by the codec `fsst`, the block cache, and the source of answers
// on the wire.
//
// String i of a text of n bytes is its bytes [511 i, 511 (i + 1)), the last one
// the rest; none for n = 0. Each is coded separately. All integers are
// little-endian. The block is
//
//   for each string except the first whose number divides by 64, a u32: the
//       offset of its codes from the codes of string 0;
//   for each other string, a u16: the offset of its codes from those of the
//       last string before it whose number divides by 64;
//   the codes of all strings, up to the end of the block.
//
// The sizes of the strings follow from n, so nothing else is stored. The marks
// cost 0.4 % of the text, and nothing up to 511 bytes. The codes of all strings
// are one run that decodes to the text.
#ifndef QUIRE_CODECS_FSST_BLOCK_FSST_BLOCK_H_
#define QUIRE_CODECS_FSST_BLOCK_FSST_BLOCK_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/fsst/decode/fsst_decoder.h"
#include "codecs/fsst/encode/fsst_encoder.h"

namespace quire {

// Largest text of a block, in bytes.
inline constexpr size_t kFsstBlockTextSizeMax = size_t{1} << 30;

// Upper bound on the size that EncodeFsstBlock() writes: the marks, and two
// bytes per byte of text.
// REQUIRES: text_size <= kFsstBlockTextSizeMax.
size_t FsstBlockSizeMax(size_t text_size);

// Writes the block of `text` to the front of `block`; returns its size. A text
// that does not suit the encoder's table grows, at worst to twice its size; the
// caller compares and stores the text itself instead. Deterministic. Allocates
// nothing.
// REQUIRES: block.size() >= FsstBlockSizeMax(text.size()).
size_t EncodeFsstBlock(const FsstEncoder& encoder, ByteView text,
                       MutableByteView block);

// Reads a block. Borrows its bytes. Immutable, hence thread-safe.
class FsstBlockView {
 public:
  // Checks all marks against each other, the size of the block and that of its
  // text. After that no call reads outside the block, whatever its codes are.
  // Checks about ten strings per nanosecond.
  // Errors: DataLoss  not a block of `text_size` bytes.
  static absl::StatusOr<FsstBlockView> Parse(ByteView block, size_t text_size);

  // Decoded size, in bytes.
  size_t text_size() const { return text_size_; }

  // Codes of all strings: one run that decodes to the text.
  ByteView codes() const { return codes_; }

  // A run of codes, and the bytes to cut off after decoding it.
  struct CodeRange {
    ByteView codes;
    // Decoded bytes, each less than 8: runs begin and end with the symbols that
    // hold the first and the last byte of the range.
    uint32_t front_cut_size_bytes = 0;
    uint32_t back_cut_size_bytes = 0;
  };

  // Returns the shortest run whose decoding covers [offset, offset + size);
  // empty if `size` is 0. Walks over the codes of at most one string at either
  // end.
  // REQUIRES: offset + size <= text_size().
  // Errors: DataLoss  the codes of a string at either end are malformed or
  //                   decode to too few bytes. Other strings are not checked.
  absl::StatusOr<CodeRange> Find(const FsstDecoder& decoder, size_t offset,
                                 size_t size) const;

  // Decodes bytes [offset, offset + out.size()). Takes the time to decode the
  // range, and to walk over the codes of half a string on average.
  // REQUIRES: offset + out.size() <= text_size().
  // Errors: DataLoss  malformed codes within the range, or before it in its
  //                   first string. Other strings are not checked, unless the
  //                   range is the whole text: then the size of each string is
  //                   checked.
  absl::Status DecodeRange(const FsstDecoder& decoder, size_t offset,
                           MutableByteView out) const;

 private:
  // The symbol that contains a given byte of the text.
  struct Symbol {
    // Offset in codes_.
    size_t codes_begin = 0;
    size_t codes_end = 0;
    // Bytes of the symbol before and after that byte.
    uint32_t text_before = 0;
    uint32_t text_behind = 0;
  };

  FsstBlockView(ByteView block, size_t text_size);

  // REQUIRES: offset < text_size(). Errors: as Find().
  absl::StatusOr<Symbol> SymbolAt(const FsstDecoder& decoder,
                                  size_t offset) const;

  // Offset of the codes of a string; for the string count, the end of all
  // codes.
  size_t CodesBegin(size_t string) const;
  ByteView CodesOf(size_t string) const;
  // Text size of a string; 511 for all except the last.
  size_t TextSizeOf(size_t string) const;
  // True if the size of each string's codes suits its text.
  bool MarksAreRight() const;
  absl::Status DecodeAll(const FsstDecoder& decoder, MutableByteView out) const;

  size_t text_size_;
  size_t string_count_;
  // Marks of the strings that begin groups, and of the others.
  const uint8_t* group_marks_;
  const uint8_t* string_marks_;
  ByteView codes_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_BLOCK_FSST_BLOCK_H_
