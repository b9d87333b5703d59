// SPDX-License-Identifier: Apache-2.0
//
// The hot loop of fsst_encoder.h at its default level; no other code uses it.
//
// Four texts are encoded side by side without branches, as the longest symbol
// at a place is known only some thirty cycles after the place: the idea of the
// paper's section 5.4, with integer registers for lanes. Look-up is that of
// section 5.3, without its loss: symbols of three bytes and more are found in a
// perfect hash table by all of their bytes, and not only one for each prefix of
// three bytes. So that not every size must be tried everywhere, a second table
// tells by the first three bytes which sizes there are. Like the kernels of
// section 5.3.1, the loop is chosen by the table: for how many sizes it tries.
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

// A text to encode, and where its codes go. All of it lies in buffers that have
// space as FsstGreedyKernel::Encode says.
struct FsstJob {
  const uint8_t* text = nullptr;
  const uint8_t* text_end = nullptr;
  uint8_t* codes = nullptr;
  // Set when it is done.
  uint8_t* codes_end = nullptr;
};

// The symbols of a table by code, without those that the longest match never
// takes: those that a lower code has as well, and in a zero-terminated table
// longer ones with 00, so that codes end where the text does. They have size 0.
std::vector<FsstSymbol> GreedySymbols(const SymbolTable& table);

// Immutable: thread-safe. 150 KB.
class FsstGreedyKernel {
 public:
  // For symbols by code; those of size 0 are none. Null if they are nothing for
  // this kernel: if every byte value is in a symbol of two bytes or more, or if
  // no perfect hash function is found. Neither happens with tables for text.
  static std::shared_ptr<const FsstGreedyKernel> Make(
      std::span<const FsstSymbol> symbols);

  // A byte that no symbol of two bytes or more contains.
  uint8_t terminator() const { return terminator_; }

  // Encodes all jobs. Behind each text stands the terminator, and then at least
  // 7 bytes of anything. Its codes have space for 2 bytes for each of the text
  // and 1 more.
  void Encode(std::span<FsstJob> jobs) const;

 private:
  // A code as the loop wants it: bits 0-7 the code, 8 whether it is an escape,
  // 12-15 the size of the symbol, 1 for an escape.
  using Info = uint16_t;

  // Which sizes the symbols may have that begin with some three bytes, longest
  // first.
  static constexpr size_t kSizesMax = 3;

  struct alignas(64) SizeSet {
    // Ones for the bytes of a word that do not count; all ones where there are
    // no more sizes.
    std::array<uint64_t, kSizesMax> pads = {};
    // What a padded word is multiplied with.
    std::array<uint64_t, kSizesMax> factors = {};
    // The set with the sizes that are too many.
    uint8_t next = 0;
  };

  struct Entry {
    // A symbol padded with ones.
    uint64_t bytes = 0;
    Info info = 0;
  };

  FsstGreedyKernel() = default;

  void AddShortSymbols(std::span<const FsstSymbol> symbols);
  // False if there is no perfect hash function.
  bool AddLongSymbols(std::span<const FsstSymbol> symbols);
  bool TryFactors(std::span<const FsstSymbol> symbols, uint64_t seed);
  // Makes entry 0, which stands for no symbol, one that nothing is equal to.
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
  // The most sizes that a set has, but not more than kSizesMax.
  int size_count_ = 0;
  // By size.
  std::array<uint64_t, kFsstSymbolSizeMax + 1> factors_ = {};
  uint64_t unused_factor_ = 0;
  // By the first two bytes: what to do where no symbol of three or more fits.
  std::array<Info, 1 << 16> pairs_ = {};
  // By a hash of the first three bytes: which set.
  std::array<uint8_t, 1 << kPrefixBits> prefixes_ = {};
  // All there can be: of set i, bit n stands for size n + 3.
  std::array<SizeSet, 64> size_sets_ = {};
  // By a hash of all bytes: which entry.
  std::array<uint8_t, 1 << kIndexBits> index_ = {};
  std::array<Entry, kFsstSymbolCountMax + 1> entries_ = {};
};

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_ENCODE_FSST_GREEDY_KERNEL_H_
