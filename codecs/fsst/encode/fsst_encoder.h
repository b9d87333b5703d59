// SPDX-License-Identifier: Apache-2.0
//
// Encodes text with a symbol table: at each offset the longest matching symbol,
// or an escape and the byte itself if none matches (Boncz et al., "FSST",
// section 3.3, Algorithm 2).
#ifndef QUIRE_CODECS_FSST_ENCODE_FSST_ENCODER_H_
#define QUIRE_CODECS_FSST_ENCODE_FSST_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "codecs/base/bytes.h"
#include "codecs/fsst/encode/fsst_greedy_kernel.h"
#include "codecs/fsst/encode/fsst_optimal_parse.h"
#include "codecs/fsst/table/symbol_table.h"

namespace quire {

enum class FsstLevel {
  // Takes the longest symbol at each offset.
  kDefault,
  // Writes the fewest bytes of codes that the table allows, by dynamic
  // programming; several times slower.
  kHigh,
};

// Encodes with one table. Immutable after construction: thread-safe.
//
// Texts are cut every kFsstStringSizeMax bytes, and no symbol crosses a cut, as
// in the authors' library (section 5.4).
//
// Guarantee: codes depend on the text, the table and the level alone, not on
// the call, the neighbours in a batch or the machine. Two texts are therefore
// equal if and only if their codes are (section 3.4). Databases may compare,
// hash and look up compressed strings.
class FsstEncoder {
 public:
  explicit FsstEncoder(const SymbolTable& table,
                       FsstLevel level = FsstLevel::kDefault);

  // Upper bound on the size of the codes of `text_size` bytes.
  static constexpr size_t CodesSizeMax(size_t text_size) {
    return 2 * text_size;
  }

  // Upper bound on the memory of an encoder at the default level, for a table
  // of this size as serialised.
  static constexpr size_t MemoryBytesMax(size_t table_size) {
    return FsstGreedyKernel::MemoryBytesMax(table_size);
  }

  // Encodes `text` to the front of `codes`; returns the size of the codes in
  // bytes. The rest of `codes` is unspecified.
  // REQUIRES: codes.size() >= CodesSizeMax(text.size()); no overlap.
  size_t Encode(ByteView text, MutableByteView codes) const;

  // Encodes each text separately, codes following each other: code_ends[i]
  // receives the offset in `codes` at which text i ends and the next begins.
  // Returns the total size. Much faster than one call per text if texts are
  // short.
  // REQUIRES: code_ends.size() == texts.size(); codes.size() >= CodesSizeMax(T)
  // and CodesSizeMax(T) < 2^32, where T is the size of all texts; no overlap.
  size_t EncodeStrings(std::span<const ByteView> texts, MutableByteView codes,
                       std::span<uint32_t> code_ends) const;

 private:
  // Collects texts in a batch and encodes it when full.
  class Batch;

  // For kDefault.
  std::shared_ptr<const FsstGreedyKernel> kernel_;
  // For kHigh.
  std::optional<FsstOptimalParse> optimal_parse_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_ENCODE_FSST_ENCODER_H_
