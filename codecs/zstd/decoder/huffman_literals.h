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

// Huffman-coded literals (RFC 8878, section 4.2), and their table, which later
// blocks may reuse.
//
// All malformed or unusual input gives false.
// Thread-compatible.
class HuffmanLiterals {
 public:
  // Reads a table from the front of `stored` and returns its size in bytes; 0
  // if it is malformed, and then there is no table.
  // REQUIRES: BackwardBits::kBytesInFront readable bytes in front of `stored`.
  size_t ReadTable(ByteView stored);

  bool has_table() const { return log_ != 0; }

  // Drops the table.
  void Reset() { log_ = 0; }

  // Decodes `stored`, one stream or four, to exactly out.size() bytes.
  // REQUIRES: has_table(); kBytesInFront readable bytes in front of `stored`.
  bool DecodeOne(ByteView stored, MutableByteView out) const;
  bool DecodeFour(ByteView stored, MutableByteView out) const;

 private:
  // Symbols with their code lengths as zstd writes them: 0 for an absent
  // symbol, otherwise the table's log + 1 - length.
  struct Weights {
    // The last is not stored; it follows from the others.
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
