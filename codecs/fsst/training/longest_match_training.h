// SPDX-License-Identifier: Apache-2.0
//
// Training for the encoder that takes the longest symbol at every place.
#ifndef QUIRE_CODECS_FSST_TRAINING_LONGEST_MATCH_TRAINING_H_
#define QUIRE_CODECS_FSST_TRAINING_LONGEST_MATCH_TRAINING_H_

#include <cstddef>
#include <vector>

#include "codecs/fsst/table/symbol_table.h"
#include "codecs/fsst/training/training_sample.h"

namespace quire {

// At most `symbol_count_max` symbols for `sample`, the most valuable first.
//
// Up to four rounds grow symbols as the paper does: the sample is encoded, and
// the symbols that appear to gain most, out of those there are, single bytes
// and pairs of neighbours, are the next round's. Gain there is how often a
// string occurs times its length less a half.
// The rounds that follow exchange few symbols and count what is really won and
// lost. The pairs that would save most codes are tried on top of a full table;
// after the next encoding, the symbols without which least would become longer
// are dropped. Fewer are tried each round.
// The first half of the rounds looks at a growing part of the sample.
//
// REQUIRES: 1 <= rounds, 1 <= symbol_count_max <= kFsstSymbolCountMax.
// Source: FSST paper, section 4.2 and Algorithm 3, for the rounds that grow.
std::vector<FsstSymbol> TrainForLongestMatch(const TrainingSample& sample,
                                             int rounds,
                                             size_t symbol_count_max);

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_TRAINING_LONGEST_MATCH_TRAINING_H_
