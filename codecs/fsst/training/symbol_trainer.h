// SPDX-License-Identifier: Apache-2.0
//
// Finds the 255 symbols that make texts shortest. Read symbol_table.h first:
// it says what a table is.
#ifndef QUIRE_CODECS_FSST_TRAINING_SYMBOL_TRAINER_H_
#define QUIRE_CODECS_FSST_TRAINING_SYMBOL_TRAINER_H_

#include <cstddef>
#include <optional>
#include <span>

#include "codecs/base/bytes.h"
#include "codecs/fsst/encode/fsst_encoder.h"
#include "codecs/fsst/table/symbol_table.h"

namespace quire {

struct SymbolTrainerOptions {
  // Bytes of the texts that are looked at, spread evenly over all of them. Time
  // grows with it. Mixed documents gain up to 256 KiB (some percent), columns
  // of one kind little beyond the default. Unset: 16 KiB, and 128 KiB at kHigh.
  // Cut to 64 MiB.
  std::optional<size_t> sample_size_bytes = std::nullopt;

  // How often a table is made out of what the table before it is seen to do.
  // Symbols at most double in length in each of the first four rounds, so fewer
  // find none of eight bytes; from 20 on little is won. At kHigh rounds of
  // another kind, that come after ten of these. Unset: 8, and 20 at kHigh. Cut
  // to 1..100.
  std::optional<int> rounds = std::nullopt;

  // How much is tried, and for which encoder: at kDefault for the one that
  // takes the longest symbol, at kHigh for the shortest parse. Any encoder may
  // use any table; on mixed documents tables of kHigh are the better ones for
  // the default encoder too (by 3-8 %), on columns of fixed form (uuid) they
  // may be worse by 10 %.
  FsstLevel level = FsstLevel::kDefault;

  // The table is for strings that end in, and have nowhere else, the byte 00:
  // its code 0 is that byte.
  bool zero_terminated = false;
};

// A table for `texts` and for what resembles them. The boundaries between
// texts matter: no symbol is learned across one. Any texts will do: none at
// all give the table without symbols.
// Deterministic: the same texts and options give the same table on every
// machine. Memory: the sample and at most 3 MiB, 10 MiB at kHigh. Time: what
// the size of each text takes to read, and about 2 ms, or 200 ms at kHigh, in
// proportion to the sample and the rounds.
// Thread-safe.
// Source: FSST paper, section 4 and Algorithm 3, for the first rounds;
// longest_match_training.h and shortest_parse_training.h say what follows.
SymbolTable TrainSymbolTable(std::span<const ByteView> texts,
                             const SymbolTrainerOptions& options = {});

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_TRAINING_SYMBOL_TRAINER_H_
