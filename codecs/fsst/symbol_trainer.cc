// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/symbol_trainer.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "codecs/base/endian.h"
#include "codecs/fsst/symbol_matcher.h"
#include "codecs/fsst/training_sample.h"

namespace quire {
namespace {

// Codes below kEscapes are indexes of symbols; kEscapes + b is the escaped byte
// b.
constexpr size_t kEscapes = 256;
constexpr size_t kCodeCount = 512;

FsstSymbol SymbolOfByte(size_t byte) {
  return {.bytes = byte, .size = 1};
}

// What a table does to the sample: how often each code occurs and each pair of
// neighbours.
class CodeCounts {
 public:
  CodeCounts() : singles_(kCodeCount), pairs_(kCodeCount * kCodeCount) {}

  // Returns the size of the sample in codes.
  uint64_t Count(const TrainingSample& sample, const SymbolMatcher& matcher);

  uint32_t single(size_t code) const { return singles_[code]; }

  uint32_t pair(size_t first, size_t second) const {
    return pairs_[first * kCodeCount + second];
  }

 private:
  std::vector<uint32_t> singles_;
  std::vector<uint32_t> pairs_;
};

uint64_t CodeCounts::Count(const TrainingSample& sample,
                           const SymbolMatcher& matcher) {
  std::ranges::fill(singles_, 0);
  std::ranges::fill(pairs_, 0);
  uint64_t codes_size = 0;
  for (size_t i = 0; i < sample.piece_count(); ++i) {
    const ByteView piece = sample.piece(i);
    size_t before = kCodeCount;
    for (size_t at = 0; at < piece.size();) {
      const auto word = LoadLittleEndian<uint64_t>(&piece[at]);
      const auto match = matcher.Longest(word, piece.size() - at);
      const size_t byte = kEscapes + (word & 0xff);
      const size_t code =
          match.index == SymbolMatcher::kNone ? byte : match.index;
      ++singles_[code];
      // Single bytes and what begins with them are candidates always, or
      // symbols could only grow.
      if (match.size > 1) {
        ++singles_[byte];
      }
      if (before != kCodeCount) {
        ++pairs_[before * kCodeCount + code];
        if (match.size > 1) {
          ++pairs_[before * kCodeCount + byte];
        }
      }
      codes_size += code >= kEscapes ? 2 : 1;
      before = code;
      at += match.size;
    }
  }
  return codes_size;
}

struct Candidate {
  FsstSymbol symbol;
  uint64_t gain;
};

// Candidates by their bytes; the same bytes come out of several pairs.
class CandidateSet {
 public:
  void Add(const FsstSymbol& symbol, uint64_t gain) {
    if (gain > 0) {
      gains_[symbol.size - size_t{1}][symbol.bytes] += gain;
    }
  }

  std::vector<FsstSymbol> Best(size_t count_max) const {
    std::vector<Candidate> all;
    for (size_t i = 0; i < gains_.size(); ++i) {
      for (const auto& [bytes, gain] : gains_[i]) {
        all.push_back({{bytes, static_cast<uint8_t>(i + 1)}, gain});
      }
    }
    const size_t count = std::min(count_max, all.size());
    const auto rank = [](const Candidate& candidate) {
      return std::tuple(std::numeric_limits<uint64_t>::max() - candidate.gain,
                        candidate.symbol.size, candidate.symbol.bytes);
    };
    std::ranges::partial_sort(all, all.begin() + static_cast<ptrdiff_t>(count),
                              {}, rank);
    std::vector<FsstSymbol> best;
    for (size_t i = 0; i < count; ++i) {
      best.push_back(all[i].symbol);
    }
    return best;
  }

 private:
  std::array<std::unordered_map<uint64_t, uint64_t>, kFsstSymbolSizeMax> gains_;
};

class SymbolTrainer {
 public:
  SymbolTrainer(std::span<const ByteView> texts, size_t sample_size_bytes,
                bool zero_terminated)
      : sample_(texts, sample_size_bytes), zero_terminated_(zero_terminated) {}

  std::vector<FsstSymbol> Train(int rounds) {
    std::vector<FsstSymbol> symbols = StartSymbols();
    std::vector<FsstSymbol> best = symbols;
    uint64_t best_size = std::numeric_limits<uint64_t>::max();
    for (int round = 0; round <= rounds; ++round) {
      matcher_.SetSymbols(symbols);
      const uint64_t size = counts_.Count(sample_, matcher_);
      if (size < best_size) {
        best_size = size;
        best = symbols;
      }
      if (round < rounds) {
        symbols = NextSymbols(symbols);
      }
    }
    return best;
  }

 private:
  std::vector<FsstSymbol> StartSymbols() const {
    return zero_terminated_ ? std::vector<FsstSymbol>{SymbolOfByte(0)}
                            : std::vector<FsstSymbol>();
  }

  // The terminator must end every string as a code of its own.
  bool IsAllowed(const FsstSymbol& symbol) const {
    if (!zero_terminated_) {
      return true;
    }
    for (size_t i = 0; i < symbol.size; ++i) {
      if ((symbol.bytes >> (8 * i) & 0xff) == 0) {
        return false;
      }
    }
    return true;
  }

  std::vector<FsstSymbol> NextSymbols(const std::vector<FsstSymbol>& symbols) {
    // Codes that occur, with what they stand for.
    std::vector<std::pair<size_t, FsstSymbol>> codes;
    for (size_t code = 0; code < kCodeCount; ++code) {
      if (counts_.single(code) > 0) {
        codes.emplace_back(code, code < symbols.size()
                                     ? symbols[code]
                                     : SymbolOfByte(code - kEscapes));
      }
    }
    CandidateSet candidates;
    for (const auto& [code, symbol] : codes) {
      Add(candidates, symbol, counts_.single(code));
      for (const auto& [next_code, next] : codes) {
        const uint32_t count = counts_.pair(code, next_code);
        const size_t size = size_t{symbol.size} + next.size;
        if (count > 0 && size <= kFsstSymbolSizeMax) {
          Add(candidates,
              {symbol.bytes | next.bytes << (8 * symbol.size),
               static_cast<uint8_t>(size)},
              count);
        }
      }
    }
    std::vector<FsstSymbol> next = StartSymbols();
    for (const FsstSymbol& symbol :
         candidates.Best(kFsstSymbolCountMax - next.size())) {
      next.push_back(symbol);
    }
    return next;
  }

  void Add(CandidateSet& candidates, const FsstSymbol& symbol,
           uint64_t count) const {
    if (IsAllowed(symbol)) {
      // A single byte saves its escape at every place.
      candidates.Add(symbol, count * (symbol.size == 1 ? 8 : symbol.size));
    }
  }

  TrainingSample sample_;
  bool zero_terminated_;
  SymbolMatcher matcher_;
  CodeCounts counts_;
};

}  // namespace

SymbolTable TrainSymbolTable(std::span<const ByteView> texts,
                             const SymbolTrainerOptions& options) {
  const bool high = options.level == FsstLevel::kHigh;
  const size_t sample_size =
      options.sample_size_bytes.value_or(high ? 64 << 10 : 16 << 10);
  const int rounds = std::clamp(options.rounds.value_or(high ? 10 : 5), 1, 100);
  SymbolTrainer trainer(texts, sample_size, options.zero_terminated);
  // The trainer makes only tables that are allowed.
  return SymbolTable::FromSymbols(trainer.Train(rounds),
                                  options.zero_terminated)
      .value();
}

}  // namespace quire
