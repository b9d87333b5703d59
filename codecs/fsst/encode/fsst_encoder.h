// SPDX-License-Identifier: Apache-2.0
//
// From text to codes of a symbol table: at every place the longest symbol that
// matches, and where none does an escape and the byte itself (Boncz et al.,
// "FSST", section 3.3, Algorithm 2).
#ifndef QUIRE_CODECS_FSST_ENCODE_FSST_ENCODER_H_
#define QUIRE_CODECS_FSST_ENCODE_FSST_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/fsst/encode/fsst_greedy_kernel.h"
#include "codecs/fsst/encode/fsst_optimal_parse.h"
#include "codecs/fsst/table/symbol_table.h"

namespace quire {

enum class FsstLevel {
  // The longest symbol at every place.
  kDefault,
  // The fewest bytes of codes that the table allows, by dynamic programming;
  // several times slower.
  kHigh,
};

// Encodes with one table. Immutable after construction: thread-safe.
//
// Texts are cut every kFsstStringSizeMax bytes, and no symbol crosses a cut, as
// in the authors' library (section 5.4).
//
// Guarantee: what a text is encoded to depends on it, the table and the level
// alone, not on the call, its neighbours in a batch or the machine. So two
// texts are equal if and only if their codes are (section 3.4), and databases
// may compare, hash and look up compressed strings.
class FsstEncoder {
 public:
  explicit FsstEncoder(const SymbolTable& table,
                       FsstLevel level = FsstLevel::kDefault);

  // Room that always suffices for the codes of texts of `text_size` bytes.
  static constexpr size_t CodesSizeMax(size_t text_size) {
    return 2 * text_size;
  }

  // Encodes `text` to the front of `codes`; the size of the codes in bytes.
  // What follows them in `codes` has unspecified contents.
  // REQUIRES: codes.size() >= CodesSizeMax(text.size()); no overlap.
  size_t Encode(ByteView text, MutableByteView codes) const;

  // Encodes each text on its own, their codes one after the other:
  // code_ends[i] becomes the offset in `codes` at which those of text i end and
  // the next begin. Returns the size in all. Much faster than a call for each
  // where texts are short.
  // REQUIRES: code_ends.size() == texts.size(); codes.size() >= CodesSizeMax(T)
  // and CodesSizeMax(T) < 2^32, where T is the size of all texts; no overlap.
  size_t EncodeStrings(std::span<const ByteView> texts, MutableByteView codes,
                       std::span<uint32_t> code_ends) const;

 private:
  // Adds texts to a batch, and encodes it when it is full.
  class Batch;

  struct Entry {
    FsstSymbol symbol;
    uint8_t code = 0;
  };

  size_t EncodePiece(ByteView piece, uint8_t* codes) const;

  // At kDefault, where the table is fit for it.
  std::shared_ptr<const FsstGreedyKernel> kernel_;
  // At kHigh.
  std::optional<FsstOptimalParse> optimal_parse_;
  // Else: symbols by their first byte, longest first.
  std::vector<std::vector<Entry>> entries_;
};

// Whether two texts are equal, by their codes: of one table, one level.
bool FsstEquals(ByteView codes_a, ByteView codes_b);

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_ENCODE_FSST_ENCODER_H_
