// SPDX-License-Identifier: Apache-2.0
//
// Candidate symbols with their gains.
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

// Sums gains by string: many offsets and pairs give the same string (the
// paper's addOrInc, Algorithm 3). Bounded: above three quarters of the
// capacity, new strings are ignored. Thread-compatible.
class SymbolCandidates {
 public:
  // 2^capacity_log2 slots of 20 bytes. REQUIRES: 4 <= capacity_log2 <= 24.
  explicit SymbolCandidates(int capacity_log2);

  void Clear();

  // REQUIRES: `symbol` has 1 to 8 bytes followed by zeros. The gains of one
  // string sum up to less than 2^32.
  void Add(const FsstSymbol& symbol, uint32_t gain);

  // Drops the gain of `symbol` so far.
  void Exclude(const FsstSymbol& symbol);

  // Returns up to `count_max` candidates with a gain, in descending order of
  // gain, then ascending size, then bytes: independent of the order of Add().
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
