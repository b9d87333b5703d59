// SPDX-License-Identifier: Apache-2.0
//
// Training for the encoder that takes the shortest parse.
#ifndef QUIRE_CODECS_FSST_TRAINING_SHORTEST_PARSE_TRAINING_H_
#define QUIRE_CODECS_FSST_TRAINING_SHORTEST_PARSE_TRAINING_H_

#include <cstddef>
#include <vector>

#include "codecs/fsst/table/symbol_table.h"
#include "codecs/fsst/training/training_sample.h"

namespace quire {

// Makes `symbols` better for `sample`, and returns at most `symbol_count_max`,
// the most valuable first.
//
// Dynamic programming gives, for every place of a piece, the fewest bytes of
// codes for what is before it and for what is behind it. From these follows
// exactly how much longer the piece becomes without the symbol at a place (the
// best parse that goes around it), and how much shorter if any string of the
// piece were a symbol. Each round tries the strings that promise most on top of
// a full table, and then drops the symbols that are missed least; fewer are
// tried each round. Promises are read off a part of the pieces, another one in
// each round; losses off all.
//
// REQUIRES: 1 <= rounds, 1 <= symbol_count_max <= kFsstSymbolCountMax.
std::vector<FsstSymbol> TrainForShortestParse(const TrainingSample& sample,
                                              std::vector<FsstSymbol> symbols,
                                              int rounds,
                                              size_t symbol_count_max);

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_TRAINING_SHORTEST_PARSE_TRAINING_H_
