// SPDX-License-Identifier: Apache-2.0
//
// Training for the encoder that takes the longest symbol at each offset.
#ifndef QUIRE_CODECS_FSST_TRAINING_LONGEST_MATCH_TRAINING_H_
#define QUIRE_CODECS_FSST_TRAINING_LONGEST_MATCH_TRAINING_H_

#include <cstddef>
#include <vector>

#include "codecs/fsst/table/symbol_table.h"
#include "codecs/fsst/training/training_sample.h"

namespace quire {

// Returns at most `symbol_count_max` symbols for `sample`, the most valuable
// first.
//
// Up to four rounds grow symbols as in the paper. Each encodes the sample and
// keeps the symbols with the highest apparent gain among the present ones,
// single bytes and pairs of neighbours. The gain is the count times the length,
// less a half. Later rounds exchange few symbols by their actual gain and loss.
// They add the pairs that would save most codes to a full table; after the next
// encoding they drop the symbols whose loss costs least. Each round tries
// fewer. The first half of the rounds uses a growing part of the sample.
//
// REQUIRES: 1 <= rounds, 1 <= symbol_count_max <= kFsstSymbolCountMax.
// Source: FSST paper, section 4.2 and Algorithm 3, for the rounds that grow.
std::vector<FsstSymbol> TrainForLongestMatch(const TrainingSample& sample,
                                             int rounds,
                                             size_t symbol_count_max);

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_TRAINING_LONGEST_MATCH_TRAINING_H_
