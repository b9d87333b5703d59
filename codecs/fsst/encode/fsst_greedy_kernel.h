// SPDX-License-Identifier: Apache-2.0
//
// The hot loop of fsst_encoder.h at its default level, for no other code.
//
// It encodes four texts side by side without branches, since finding the
// longest symbol takes some thirty cycles: the idea of the paper's section 5.4,
// with integer registers as lanes. Look-up follows section 5.3 without its
// loss: a perfect hash table finds symbols of three bytes or more by all their
// bytes, and holds more than one for a prefix of three bytes. A second table
// maps the first three bytes to the sizes of their symbols, so that few sizes
// are tried. As in section 5.3.1, the table selects the loop: by the number of
// sizes to try.
#ifndef QUIRE_CODECS_FSST_ENCODE_FSST_GREEDY_KERNEL_H_
#define QUIRE_CODECS_FSST_ENCODE_FSST_GREEDY_KERNEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codecs/fsst/table/symbol_table.h"

namespace quire {

// A text to encode and the buffer for its codes. Both need the space that
// FsstGreedyKernel::Encode requires.
struct FsstJob {
  const uint8_t* text = nullptr;
  const uint8_t* text_end = nullptr;
  uint8_t* codes = nullptr;
  // Set by Encode().
  uint8_t* codes_end = nullptr;
};

// Returns the symbols by code. Symbols that the longest match never takes have
// size 0: duplicates of a lower code, and in a zero-terminated table longer
// symbols with 00, so that codes end where the text does.
std::vector<FsstSymbol> GreedySymbols(const SymbolTable& table);

// Encodes by longest match. Immutable: thread-safe. 150 KB.
class FsstGreedyKernel {
 public:
  // `symbols` are by code; size 0 means none. Returns null if this kernel
  // cannot use them: every byte value occurs in a symbol of two bytes or more,
  // or no perfect hash function is found. Neither happens with tables for text.
  static std::shared_ptr<const FsstGreedyKernel> Make(
      std::span<const FsstSymbol> symbols);

  // A byte that no symbol of two bytes or more contains.
  uint8_t terminator() const { return terminator_; }

  // Encodes all jobs. The terminator follows each text, then at least 7
  // arbitrary bytes. The codes have space for 2 bytes per byte of text, plus 1.
  void Encode(std::span<FsstJob> jobs) const;

 private:
  // A code in the form for the loop: bits 0-7 the code, 8 set for an escape,
  // 12-15 the size of the symbol, 1 for an escape.
  using Info = uint16_t;

  // Sizes of the symbols that begin with the same three bytes, longest first.
  static constexpr size_t kSizesMax = 3;

  struct alignas(64) SizeSet {
    // Ones for the bytes of a word to ignore; all ones for unused sizes.
    std::array<uint64_t, kSizesMax> pads = {};
    // Factors that padded words are multiplied with.
    std::array<uint64_t, kSizesMax> factors = {};
    // The set with the further sizes.
    uint8_t next = 0;
  };

  struct Entry {
    // A symbol padded with ones.
    uint64_t bytes = 0;
    Info info = 0;
  };

  FsstGreedyKernel() = default;

  void AddShortSymbols(std::span<const FsstSymbol> symbols);
  // Returns false if there is no perfect hash function.
  bool AddLongSymbols(std::span<const FsstSymbol> symbols);
  bool TryFactors(std::span<const FsstSymbol> symbols, uint64_t seed);
  // Makes entry 0, which stands for no symbol, match nothing.
  void CloseFreeEntry();
  void AddSizeSets(std::span<const FsstSymbol> symbols);

  static uint64_t Slot(uint64_t padded, uint64_t factor) {
    return padded * factor >> (64 - kIndexBits);
  }

  template <int kSizes>
  Info Find(uint64_t word) const;
  Info FindInSet(uint64_t word, const SizeSet& set, Info info) const;
  template <int kSizes>
  void Run(std::span<FsstJob> jobs) const;

  static constexpr int kPrefixBits = 12;
  static constexpr int kIndexBits = 13;

  uint8_t terminator_ = 0;
  // Number of sizes in the largest set, at most kSizesMax.
  int size_count_ = 0;
  // By size.
  std::array<uint64_t, kFsstSymbolSizeMax + 1> factors_ = {};
  uint64_t unused_factor_ = 0;
  // By the first two bytes: the code if no symbol of three bytes or more
  // matches.
  std::array<Info, 1 << 16> pairs_ = {};
  // Index of a set, by a hash of the first three bytes.
  std::array<uint8_t, 1 << kPrefixBits> prefixes_ = {};
  // All possible sets: in set i, bit n stands for size n + 3.
  std::array<SizeSet, 64> size_sets_ = {};
  // Index of an entry, by a hash of all bytes.
  std::array<uint8_t, 1 << kIndexBits> index_ = {};
  std::array<Entry, kFsstSymbolCountMax + 1> entries_ = {};
};

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_ENCODE_FSST_GREEDY_KERNEL_H_
