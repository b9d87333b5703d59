// SPDX-License-Identifier: Apache-2.0
//
// From codes back to text: a code below 255 stands for its symbol, 255 for the
// byte behind it (Boncz et al., "FSST", section 3.1 and 3.2). Codes have no
// frame, no state and no end mark, so any run of them that starts and ends
// between codes decodes on its own.
#ifndef QUIRE_CODECS_FSST_DECODE_FSST_DECODER_H_
#define QUIRE_CODECS_FSST_DECODE_FSST_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/fsst/decode/fsst_decode_kernel.h"
#include "codecs/fsst/table/symbol_table.h"

namespace quire {

// No byte of codes decodes to more.
inline constexpr size_t kFsstExpansionMax = kFsstSymbolSizeMax;

// What a decoder may use of the machine.
enum class FsstInstructions {
  // AVX-512 with VBMI2 and BITALG where there is that: half as fast again on
  // long texts.
  kBest,
  // Those that every machine of its kind has: SSE2, if anything. For tests and
  // measurements.
  kPlain,
  // None but C++'s, as on machines without SSE2. For tests.
  kPortable,
};

// Decodes what was encoded with one table. 7 KB, borrows nothing, allocates
// nothing. Immutable after construction: thread-safe.
//
// All codes may be wrong, by accident or intent: nothing is read beyond `codes`
// or written beyond `out`, of whatever size they are. Where a call fails, `out`
// has unspecified contents.
class FsstDecoder {
 public:
  explicit FsstDecoder(const SymbolTable& table,
                       FsstInstructions instructions = FsstInstructions::kBest);

  // Decodes all codes to the front of `out`; the decoded size in bytes.
  // Errors: DataLoss    a code without symbol, or an escape at the very end.
  //         OutOfRange  the text is longer than `out`.
  absl::StatusOr<size_t> Decode(ByteView codes, MutableByteView out) const;

  // Decodes all codes to all of `out`.
  // Errors: DataLoss  as Decode, or the text has another size than `out`.
  absl::Status DecodeExactly(ByteView codes, MutableByteView out) const;

  // The size in bytes of what the codes decode to, without decoding them.
  // Errors: DataLoss  as Decode.
  absl::StatusOr<size_t> DecodedSize(ByteView codes) const;

  // Decodes bytes [offset, offset + out.size()) of what the codes decode to.
  // Skips what lies before, several times faster than decoding it; does not
  // look at the codes behind.
  // Errors: DataLoss    a bad code before the end of the range.
  //         OutOfRange  the text ends before the range does.
  absl::Status DecodeRange(ByteView codes, size_t offset,
                           MutableByteView out) const;

  // Decodes many strings, the codes of which follow each other, to the front of
  // `out`, where their texts follow each other: code_ends[i] is the offset in
  // `codes` at which string i ends and the next begins, out_ends[i] becomes the
  // same in `out`. Codes behind the last string are not looked at. Much faster
  // than a call for each where strings are short.
  // Errors: DataLoss    a string is wrong as in Decode, or the ends do not
  //                     ascend or lie behind the codes.
  //         OutOfRange  the texts are longer than `out`, or than 2^32 - 1.
  // REQUIRES: code_ends.size() == out_ends.size().
  absl::Status DecodeStrings(ByteView codes,
                             std::span<const uint32_t> code_ends,
                             MutableByteView out,
                             std::span<uint32_t> out_ends) const;

  // A place between codes.
  struct CodePosition {
    // In the codes.
    size_t code_offset = 0;
    // In the text: where the symbol at `code_offset` begins.
    size_t decoded_offset = 0;
  };

  // Where the symbol begins that has the byte at `decoded_offset` of the text,
  // so that the codes can be cut there: at most 7 bytes earlier. The end of the
  // text is a place as well.
  // Errors: DataLoss    a bad code before that.
  //         OutOfRange  the text ends before.
  absl::StatusOr<CodePosition> Find(ByteView codes,
                                    size_t decoded_offset) const;

 private:
  FsstStop Run(FsstCursor& cursor) const;

  FsstDecodeTables tables_;
  bool has_avx512_ = false;
};

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_DECODE_FSST_DECODER_H_
