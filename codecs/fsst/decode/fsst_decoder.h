// SPDX-License-Identifier: Apache-2.0
//
// Decodes codes to text: a code below 255 stands for its symbol, 255 for the
// byte after it (Boncz et al., "FSST", section 3.1 and 3.2). Codes have no
// frame, state or end mark: any run of them between two codes decodes without
// the rest.
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

// Upper bound on decoded bytes per byte of codes.
inline constexpr size_t kFsstExpansionMax = kFsstSymbolSizeMax;

// Instructions that a decoder may use.
enum class FsstInstructions {
  // AVX-512 with VBMI2 and BITALG where available: twice as fast if the text
  // fits the cache.
  kBest,
  // The baseline of the architecture, such as SSE2. For tests and measurements.
  kPlain,
  // Plain C++, as on machines without SSE2. For tests.
  kPortable,
};

// Decodes codes of one table. 9 KB; borrows and allocates nothing. Immutable
// after construction: thread-safe.
//
// Codes are untrusted: a call reads nothing outside `codes` and writes nothing
// outside `out`. After a failure the contents of `out` are unspecified.
class FsstDecoder {
 public:
  explicit FsstDecoder(const SymbolTable& table,
                       FsstInstructions instructions = FsstInstructions::kBest);

  // Decodes all codes to the front of `out`; returns the decoded size in bytes.
  // Errors: DataLoss    a code without symbol, or an escape at the very end.
  //         OutOfRange  the text is longer than `out`.
  absl::StatusOr<size_t> Decode(ByteView codes, MutableByteView out) const;

  // Decodes all codes; they must fill `out`.
  // Errors: DataLoss  as Decode, or the text and `out` differ in size.
  absl::Status DecodeExactly(ByteView codes, MutableByteView out) const;

  // Returns the decoded size of the codes in bytes, without decoding them.
  // Errors: DataLoss  as Decode.
  absl::StatusOr<size_t> DecodedSize(ByteView codes) const;

  // Decodes bytes [offset, offset + out.size()) of the text. Skips codes before
  // the range several times faster than decoding them; ignores codes after it.
  // Errors: DataLoss    a bad code before the end of the range.
  //         OutOfRange  the text ends before the range does.
  absl::Status DecodeRange(ByteView codes, size_t offset,
                           MutableByteView out) const;

  // Decodes many strings whose codes follow each other to the front of `out`,
  // where their texts follow each other. code_ends[i] is the offset in `codes`
  // at which string i ends and the next begins; out_ends[i] receives the same
  // in `out`. Ignores codes after the last string. Much faster than one call
  // per string if strings are short.
  // Errors: DataLoss    a string is wrong as in Decode; ends do not ascend, or
  //                     exceed the size of the codes.
  //         OutOfRange  the texts are longer than `out`, or than 2^32 - 1.
  // REQUIRES: code_ends.size() == out_ends.size().
  absl::Status DecodeStrings(ByteView codes,
                             std::span<const uint32_t> code_ends,
                             MutableByteView out,
                             std::span<uint32_t> out_ends) const;

  // A position between codes.
  struct CodePosition {
    // Offset in the codes.
    size_t code_offset = 0;
    // Offset in the text at which the symbol at `code_offset` begins.
    size_t decoded_offset = 0;
  };

  // Returns where the symbol begins that contains byte `decoded_offset` of the
  // text, so that the codes can be cut there: at most 7 bytes earlier.
  // `decoded_offset` may be the end of the text.
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
