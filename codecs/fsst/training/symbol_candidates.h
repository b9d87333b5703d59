// SPDX-License-Identifier: Apache-2.0
//
// Strings that may become symbols, with what each would gain.
#ifndef QUIRE_CODECS_FSST_TRAINING_SYMBOL_CANDIDATES_H_
#define QUIRE_CODECS_FSST_TRAINING_SYMBOL_CANDIDATES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codecs/fsst/table/symbol_table.h"

namespace quire {

struct SymbolCandidate {
  FsstSymbol symbol;
  uint32_t gain;
};

// Sums gains by string: the same string comes out of many places and pairs
// (the paper's addOrInc, Algorithm 3).
// Bounded: once three quarters of the capacity are taken, strings that were not
// seen before are ignored. Thread-compatible.
class SymbolCandidates {
 public:
  // 2^capacity_log2 places of 20 bytes. REQUIRES: 4 <= capacity_log2 <= 24.
  explicit SymbolCandidates(int capacity_log2);

  void Clear();

  // REQUIRES: `symbol` has 1 to 8 bytes with zeros behind. The gains of one
  // string sum up to less than 2^32.
  void Add(const FsstSymbol& symbol, uint32_t gain);

  // Forgets what `symbol` gained so far.
  void Exclude(const FsstSymbol& symbol);

  // The `count_max` candidates that gain most, those that gain nothing left
  // out; in falling order of gain, and of equal ones shorter before longer,
  // then by their bytes: independent of the order in which they were added.
  std::vector<SymbolCandidate> Best(size_t count_max) const;

 private:
  struct Place {
    uint64_t bytes = 0;
    uint32_t gain = 0;
    uint8_t size = 0;  // 0: free
  };

  size_t Find(const FsstSymbol& symbol) const;

  int shift_;
  std::vector<Place> places_;  // open addressing
  std::vector<uint32_t> taken_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_TRAINING_SYMBOL_CANDIDATES_H_
