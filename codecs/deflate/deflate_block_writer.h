// SPDX-License-Identifier: Apache-2.0
//
// Encodes symbols as blocks of a DEFLATE stream, as zlib and gzip do. Internal
// to deflate_state.cc.
#ifndef QUIRE_CODECS_DEFLATE_DEFLATE_BLOCK_WRITER_H_
#define QUIRE_CODECS_DEFLATE_DEFLATE_BLOCK_WRITER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"

#include "codecs/base/bytes.h"

namespace quire {

inline constexpr size_t kDeflateMatchMin = 3;
inline constexpr size_t kDeflateMatchMax = 258;

// A byte of text, or a match: its distance, 1 to 32,768, from bit 8 on and its
// length less 3 below.
using DeflateSymbol = uint32_t;

// Thread-compatible.
class DeflateBlockWriter {
 public:
  // Maximum number of symbols in a block, of either encoder.
  static constexpr size_t kSymbolsMax = 32767;

  DeflateBlockWriter();

  // Begins a stream. With `fixed_only` all blocks use the fixed codes.
  void Start(bool fixed_only);

  // Symbols in the current block.
  size_t size() const { return size_; }

  std::span<const DeflateSymbol> symbols() const {
    return std::span(symbols_).first(size_);
  }

  // Appends a symbol. REQUIRES: size() < kSymbolsMax.
  void AddLiteral(uint8_t byte) { symbols_[size_++] = byte; }

  void AddMatch(size_t distance, size_t length) {
    symbols_[size_++] =
        static_cast<DeflateSymbol>(distance << 8 | (length - kDeflateMatchMin));
  }

  // Number of matches in the block, and the bits of their distances if each
  // distance code has 5.
  struct DistanceCost {
    size_t matches = 0;
    size_t bits = 0;
  };

  DistanceCost CountDistances();

  using Sink = absl::FunctionRef<bool(ByteView)>;

  // Ends the block and writes it in the form that zlib estimates to be
  // smallest. `text` is the text of its symbols; without it, the block cannot
  // be stored. Passes bytes to `sink` whenever a buffer is full, and the rest
  // after the last block. Returns false once `sink` did.
  bool EndBlock(std::optional<ByteView> text, bool is_last, Sink sink);

 private:
  struct Costs;

  void CountSymbols();
  Costs BuildCodes();
  bool WriteStored(ByteView text, bool is_last, Sink sink);
  void WriteCodes(const Costs& costs);
  bool WriteSymbols(Sink sink);

  void Put(uint64_t bits, unsigned count);
  void PutWholeBytes();
  bool Drain(Sink sink);

  static constexpr size_t kBufferSize = size_t{16} << 10;
  // Upper bound on the size of the codes, which are written between two checks
  // for the end of the buffer.
  static constexpr size_t kBufferSlack = 1024;

  std::vector<DeflateSymbol> symbols_;
  size_t size_ = 0;
  // Number of symbols that the frequencies count.
  size_t counted_ = 0;
  bool fixed_only_ = false;

  std::array<uint16_t, 286> literal_frequencies_;
  std::array<uint16_t, 30> distance_frequencies_;
  std::array<uint8_t, 286> literal_lengths_;
  std::array<uint8_t, 30> distance_lengths_;
  std::array<uint16_t, 286> literal_codes_;
  std::array<uint16_t, 30> distance_codes_;
  // Code lengths as RFC 1951, section 3.2.7, stores them: a symbol in the low 5
  // bits, its extra bits above.
  std::array<uint16_t, 286 + 30> stored_lengths_;
  size_t stored_lengths_size_ = 0;
  std::array<uint8_t, 19> length_lengths_;
  std::array<uint16_t, 19> length_codes_;

  std::array<uint8_t, kBufferSize + kBufferSlack> buffer_;
  size_t buffered_ = 0;
  uint64_t bits_ = 0;
  unsigned bit_count_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_DEFLATE_DEFLATE_BLOCK_WRITER_H_
