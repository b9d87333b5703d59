// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_ZSTD_DECODER_HUFFMAN_LITERALS_H_
#define QUIRE_CODECS_ZSTD_DECODER_HUFFMAN_LITERALS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codecs/base/bytes.h"
#include "codecs/zstd/decoder/fse_table.h"

namespace quire {

// Literals that are Huffman-coded (RFC 8878, section 4.2), and the table that
// they were coded with, which later blocks may use again.
//
// It knows one answer to all that is wrong or unusual: false.
// Thread-compatible.
class HuffmanLiterals {
 public:
  // Reads a table from the front of `stored`; returns how many bytes it takes,
  // or 0 if it is wrong, and then there is no table.
  // REQUIRES: BackwardBits::kBytesInFront readable bytes in front of `stored`.
  size_t ReadTable(ByteView stored);

  bool has_table() const { return log_ != 0; }

  // Forgets the table.
  void Reset() { log_ = 0; }

  // Decodes all of `stored`, one stream or four, to exactly out.size() bytes.
  // REQUIRES: has_table(); kBytesInFront readable bytes in front of `stored`.
  bool DecodeOne(ByteView stored, MutableByteView out) const;
  bool DecodeFour(ByteView stored, MutableByteView out) const;

 private:
  // Symbols with their code lengths as zstd writes them: 0 for an absent
  // symbol, else the table's log + 1 - length.
  struct Weights {
    // The last is not stored, and follows from the others.
    std::array<uint8_t, 256> weights;
    unsigned count = 0;
  };

  static size_t ReadWeights(ByteView stored, Weights& weights);
  static bool ReadFseWeights(ByteView stream, unsigned log,
                             std::span<const FseStep> steps, Weights& weights);
  bool BuildTable(Weights& weights);

  static constexpr unsigned kLogMax = 11;

  // By the next log_ bits of a stream: the code's length, and above it the
  // symbol.
  std::array<uint16_t, size_t{1} << kLogMax> table_;
  unsigned log_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_ZSTD_DECODER_HUFFMAN_LITERALS_H_
