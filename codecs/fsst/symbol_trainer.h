// SPDX-License-Identifier: Apache-2.0
//
// Finds the 255 symbols that make texts shortest. Read symbol_table.h first:
// it says what a table is.
#ifndef QUIRE_CODECS_FSST_SYMBOL_TRAINER_H_
#define QUIRE_CODECS_FSST_SYMBOL_TRAINER_H_

#include <cstddef>
#include <optional>
#include <span>

#include "codecs/base/bytes.h"
#include "codecs/fsst/fsst_encoder.h"
#include "codecs/fsst/symbol_table.h"

namespace quire {

struct SymbolTrainerOptions {
  // Bytes of the texts that are looked at, spread evenly over all of them.
  // Unset: 16 KiB, and 64 KiB at kHigh. Cut to 64 MiB.
  std::optional<size_t> sample_size_bytes = std::nullopt;

  // How often a table is made out of what the table before it is seen to do.
  // Symbols at most double in length in a round, so fewer than four find none
  // of eight bytes. Unset: 5, and 10 at kHigh. Cut to 1..100.
  std::optional<int> rounds = std::nullopt;

  // The level of the encoder that will use the table.
  FsstLevel level = FsstLevel::kDefault;

  // The table is for strings that end in, and have nowhere else, the byte 00:
  // its code 0 is that byte.
  bool zero_terminated = false;
};

// A table for `texts` and for what resembles them. The boundaries between
// texts matter: no symbol is learned across one. Any texts will do: none at
// all give the table without symbols.
// Deterministic: the same texts and options give the same table on every
// machine. Memory: the sample and at most 2 MiB.
// Thread-safe.
// Source: FSST paper, section 4 and Algorithm 3.
SymbolTable TrainSymbolTable(std::span<const ByteView> texts,
                             const SymbolTrainerOptions& options = {});

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_SYMBOL_TRAINER_H_
