// SPDX-License-Identifier: Apache-2.0
//
// Finds the 255 symbols that make texts shortest. Read symbol_table.h first,
// which defines tables.
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
  // Size of the sample, spread evenly over all texts, in bytes. Time grows with
  // it. Mixed documents gain up to 256 KiB (some percent), columns of one kind
  // hardly beyond the default. Unset: 16 KiB, and 128 KiB at kHigh. Capped at
  // 64 MiB.
  std::optional<size_t> sample_size_bytes = std::nullopt;

  // Number of rounds; each makes a table from the result of the last. Symbols
  // at most double in length in each of the first four rounds, so fewer rounds
  // find none of eight bytes; more than 20 gain little. At kHigh these rounds
  // follow ten of the other kind. Unset: 8, and 20 at kHigh. Capped to 1..100.
  std::optional<int> rounds = std::nullopt;

  // Effort, and the encoder to train for: longest match at kDefault, shortest
  // parse at kHigh. Any encoder may use any table. Tables of kHigh suit the
  // default encoder too: 3-8 % smaller on mixed documents, up to 10 % larger on
  // columns of fixed form (uuid).
  FsstLevel level = FsstLevel::kDefault;

  // Train for strings that end in the byte 00 and contain no other; code 0 is
  // that byte.
  bool zero_terminated = false;
};

// Returns a table for `texts` and for similar text. No symbol crosses the
// boundary between texts. Any texts are valid; none give the table without
// symbols. Deterministic: the same texts and options give the same table on
// every machine. Memory: the sample and at most 3 MiB, 10 MiB at kHigh. Time:
// reading the size of each text, and about 2 ms, or 200 ms at kHigh, in
// proportion to sample and rounds.
// Thread-safe. Source: FSST paper, section 4 and Algorithm 3, for the first
// rounds; longest_match_training.h and shortest_parse_training.h describe the
// others.
SymbolTable TrainSymbolTable(std::span<const ByteView> texts,
                             const SymbolTrainerOptions& options = {});

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_TRAINING_SYMBOL_TRAINER_H_
