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

// Improves `symbols` for `sample`. Returns at most `symbol_count_max`, the most
// valuable first.
//
// Dynamic programming gives, for every offset of a piece, the fewest bytes of
// codes before and after it. These give exact losses and gains: how much longer
// the piece becomes without the symbol at an offset, and how much shorter if
// any string of the piece were a symbol. Each round adds the strings with the
// highest gain to a full table, then drops the symbols with the lowest loss;
// each tries fewer. Gains come from part of the pieces, another part in each
// round; losses come from all.
//
// REQUIRES: 1 <= rounds, 1 <= symbol_count_max <= kFsstSymbolCountMax.
std::vector<FsstSymbol> TrainForShortestParse(const TrainingSample& sample,
                                              std::vector<FsstSymbol> symbols,
                                              int rounds,
                                              size_t symbol_count_max);

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_TRAINING_SHORTEST_PARSE_TRAINING_H_
