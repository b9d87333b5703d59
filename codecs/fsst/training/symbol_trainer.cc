// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/training/symbol_trainer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "codecs/fsst/training/longest_match_training.h"
#include "codecs/fsst/training/shortest_parse_training.h"
#include "codecs/fsst/training/training_sample.h"

namespace quire {
namespace {

constexpr size_t kSampleSizeBytes = 16 << 10;
constexpr size_t kHighSampleSizeBytes = 128 << 10;
constexpr int kRounds = 8;
// Rounds of longest match before those of kHigh.
constexpr int kFirstRounds = 10;
constexpr int kHighRounds = 20;
constexpr int kRoundsMax = 100;

// Gives the unused codes to single bytes of the sample, so that few bytes are
// escaped where text differs from the sample.
void AddBytes(const TrainingSample& sample, size_t symbol_count_max,
              std::vector<FsstSymbol>& symbols) {
  std::array<bool, 256> is_wanted = {};
  for (size_t i = 0; i < sample.piece_count(); ++i) {
    for (const uint8_t byte : sample.piece(i)) {
      is_wanted[byte] = true;
    }
  }
  for (const FsstSymbol& symbol : symbols) {
    if (symbol.size == 1) {
      is_wanted[symbol.bytes] = false;
    }
  }
  for (size_t byte = 0;
       byte < is_wanted.size() && symbols.size() < symbol_count_max; ++byte) {
    if (is_wanted[byte]) {
      symbols.push_back({.bytes = byte, .size = 1});
    }
  }
}

}  // namespace

SymbolTable TrainSymbolTable(std::span<const ByteView> texts,
                             const SymbolTrainerOptions& options) {
  const bool high = options.level == FsstLevel::kHigh;
  const TrainingSample sample(
      texts,
      options.sample_size_bytes.value_or(high ? kHighSampleSizeBytes
                                              : kSampleSizeBytes),
      options.zero_terminated);
  const int rounds = std::clamp(
      options.rounds.value_or(high ? kHighRounds : kRounds), 1, kRoundsMax);
  // The terminator is a symbol of every zero-terminated table.
  const size_t symbol_count_max =
      kFsstSymbolCountMax - (options.zero_terminated ? 1 : 0);
  std::vector<FsstSymbol> symbols = TrainForLongestMatch(
      sample, high ? kFirstRounds : rounds, symbol_count_max);
  if (high) {
    symbols = TrainForShortestParse(sample, std::move(symbols), rounds,
                                    symbol_count_max);
  }
  if (symbols.size() < symbol_count_max) {
    AddBytes(sample, symbol_count_max, symbols);
  }
  // Training yields only valid symbols.
  return SymbolTable::FromSymbols(symbols, options.zero_terminated).value();
}

}  // namespace quire
