// SPDX-License-Identifier: Apache-2.0
//
// A block of text as FSST strings, with marks that say where each begins, so
// that any range of the block is found, copied as codes or decoded without
// touching the rest ("FSST: Fast Random Access String Compression", section 2:
// random access). One layout for three uses: what the codec `fsst` stores, what
// the block cache may hold, and where answers on the wire are copied from.
//
// String i of a text of n bytes is its bytes [511 i, 511 (i + 1)), the last one
// what is left; none for n = 0. Each is coded on its own. With all integers
// little-endian, the block is
//
//   for each string but the first whose number divides by 64, a u32: where its
//       codes begin, counted from where the codes of string 0 begin;
//   for each string whose number does not, a u16: where its codes begin,
//       counted from where those of the last string before it whose number does
//       begin;
//   the codes of all strings, one after the other, up to the end of the block.
//
// As the sizes of the strings follow from n, nothing else is stored: the marks
// cost 0.4 % of the text, and nothing at all up to 511 bytes. The codes of all
// strings together are one run that decodes to the text.
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

// The largest text that a block can be made of, in bytes.
inline constexpr size_t kFsstBlockTextSizeMax = size_t{1} << 30;

// Room that EncodeFsstBlock() needs: what is written is at most the marks and
// two bytes for each byte of text. REQUIRES: text_size <=
// kFsstBlockTextSizeMax.
size_t FsstBlockSizeMax(size_t text_size);

// Writes the block of `text` to the front of `block`; returns its size. A text
// that the encoder's table does not fit grows, to twice its size at worst: it
// is for the caller to compare, and keep the text itself instead.
// Deterministic. Allocates nothing.
// REQUIRES: block.size() >= FsstBlockSizeMax(text.size()).
size_t EncodeFsstBlock(const FsstEncoder& encoder, ByteView text,
                       MutableByteView block);

// Reads a block. Borrows its bytes. Immutable, hence thread-safe.
class FsstBlockView {
 public:
  // Checks all marks against each other, the block's size and that of its text,
  // so that whatever else the bytes are, no call below leaves the block. Takes
  // a nanosecond for some ten strings. Errors: DataLoss  not a block of
  // `text_size` bytes.
  static absl::StatusOr<FsstBlockView> Parse(ByteView block, size_t text_size);

  // Decoded, in bytes.
  size_t text_size() const { return text_size_; }

  // Codes of all strings: one run that decodes to the text.
  ByteView codes() const { return codes_; }

  // A run of codes and what to cut off once it is decoded.
  struct CodeRange {
    ByteView codes;
    // In decoded bytes; less than 8 each, as runs begin and end with the
    // symbols that hold the range's first and last byte.
    uint32_t front_cut_size_bytes = 0;
    uint32_t back_cut_size_bytes = 0;
  };

  // The shortest run whose decoding covers [offset, offset + size); empty if
  // `size` is 0. Walks over at most one string's codes at either end.
  // REQUIRES: offset + size <= text_size().
  // Errors: DataLoss  the codes of a string at either end are malformed, or
  //                   decode to less than they should. Others are not looked
  //                   at.
  absl::StatusOr<CodeRange> Find(const FsstDecoder& decoder, size_t offset,
                                 size_t size) const;

  // Decodes bytes [offset, offset + out.size()): time is that of decoding the
  // range, and of walking over half a string's codes on average.
  // REQUIRES: offset + out.size() <= text_size().
  // Errors: DataLoss  malformed codes within the range or before it in its
  // first
  //                   string. Others are not looked at, except when the range
  //                   is the whole text: then all strings have their exact
  //                   sizes.
  absl::Status DecodeRange(const FsstDecoder& decoder, size_t offset,
                           MutableByteView out) const;

 private:
  // The symbol that has a byte of the text.
  struct Symbol {
    // In codes_.
    size_t codes_begin = 0;
    size_t codes_end = 0;
    // Bytes of the symbol on both sides of that byte.
    uint32_t text_before = 0;
    uint32_t text_behind = 0;
  };

  FsstBlockView(ByteView block, size_t text_size);

  // REQUIRES: offset < text_size(). Errors: as Find().
  absl::StatusOr<Symbol> SymbolAt(const FsstDecoder& decoder,
                                  size_t offset) const;

  // Where the codes of a string begin; of the one after the last, where they
  // end.
  size_t CodesBegin(size_t string) const;
  ByteView CodesOf(size_t string) const;
  // Of a string that is not the last, 511.
  size_t TextSizeOf(size_t string) const;
  // Each string has as many bytes of codes as its text allows.
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
