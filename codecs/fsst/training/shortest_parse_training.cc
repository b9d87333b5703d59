// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/training/shortest_parse_training.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "codecs/fsst/table/symbol_matcher.h"
#include "codecs/fsst/training/parse_lattice.h"
#include "codecs/fsst/training/symbol_candidates.h"

namespace quire {
namespace {

// Symbols tried beyond a full table: the number in the first round, and the
// fraction of it in each later round.
constexpr size_t kTriedMax = 80;
constexpr size_t kTriedMin = 2;
constexpr size_t kTriedFalloffPercent = 80;
// Expected gains come from one piece in this many, and from a bounded number of
// bytes.
constexpr size_t kPromisingPieceStep = 4;
constexpr size_t kPromisingBytesMax = 64 << 10;
constexpr int kCandidatesLog2 = 18;
// Candidates compared with one another per candidate wanted.
constexpr size_t kChoice = 20;

bool Contains(const FsstSymbol& outer, const FsstSymbol& inner) {
  for (size_t i = 0; i + inner.size <= outer.size; ++i) {
    if (FirstBytes(outer.bytes >> (8 * i), inner.size) == inner.bytes) {
      return true;
    }
  }
  return false;
}

// True if the end of `first` is the beginning of `second`, except one or two
// bytes of the shorter.
bool Chains(const FsstSymbol& first, const FsstSymbol& second) {
  const size_t size = std::min(first.size, second.size);
  for (size_t common = size - 1; common >= 2 && common + 2 >= size; --common) {
    if (first.bytes >> (8 * (first.size - common)) ==
        FirstBytes(second.bytes, common)) {
      return true;
    }
  }
  return false;
}

// True if two strings expect mostly the same gain.
bool AreRivals(const FsstSymbol& a, const FsstSymbol& b) {
  return (a.size >= b.size ? Contains(a, b) : Contains(b, a)) || Chains(a, b) ||
         Chains(b, a);
}

class ShortestParseTrainer {
 public:
  ShortestParseTrainer(const TrainingSample& sample,
                       std::vector<FsstSymbol> symbols, size_t symbol_count_max)
      : sample_(sample),
        symbol_count_max_(symbol_count_max),
        symbols_(std::move(symbols)),
        candidates_(kCandidatesLog2) {}

  std::vector<FsstSymbol> Train(int rounds);

 private:
  struct Worth {
    uint64_t loss = 0;
    uint64_t count = 0;
  };

  void Count(size_t round, bool with_candidates);
  std::vector<FsstSymbol> MostValuable() const;
  // Adds the candidates with the highest expected gain, but not two with the
  // same gain.
  void AddCandidates(std::vector<FsstSymbol>& symbols, size_t count) const;

  const TrainingSample& sample_;
  const size_t symbol_count_max_;
  std::vector<FsstSymbol> symbols_;
  SymbolMatcher matcher_;
  ParseLattice lattice_;
  std::vector<Worth> worths_;
  SymbolCandidates candidates_;
};

void ShortestParseTrainer::Count(size_t round, bool with_candidates) {
  matcher_.SetSymbols(symbols_);
  worths_.assign(symbols_.size(), Worth());
  candidates_.Clear();
  const size_t step =
      std::max(kPromisingPieceStep, sample_.size_bytes() / kPromisingBytesMax);
  for (size_t i = 0; i < sample_.piece_count(); ++i) {
    lattice_.Parse(sample_.piece(i), matcher_);
    lattice_.ForEachLoss([&](uint16_t index, uint32_t loss) {
      worths_[index].loss += loss;
      ++worths_[index].count;
    });
    if (with_candidates && (i % step == round % step ||
                            sample_.size_bytes() <= kPromisingBytesMax)) {
      lattice_.ForEachGain([&](const FsstSymbol& symbol, uint32_t gain) {
        candidates_.Add(symbol, gain);
      });
    }
  }
}

std::vector<FsstSymbol> ShortestParseTrainer::MostValuable() const {
  std::vector<size_t> order;
  for (size_t index = 0; index < symbols_.size(); ++index) {
    if (worths_[index].count > 0) {
      order.push_back(index);
    }
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tuple(worths_[b].loss, worths_[b].count, a) <
           std::tuple(worths_[a].loss, worths_[a].count, b);
  });
  order.resize(std::min(order.size(), symbol_count_max_));
  std::vector<FsstSymbol> kept;
  kept.reserve(order.size());
  for (const size_t index : order) {
    kept.push_back(symbols_[index]);
  }
  return kept;
}

void ShortestParseTrainer::AddCandidates(std::vector<FsstSymbol>& symbols,
                                         size_t count) const {
  const size_t old_count = symbols.size();
  for (const SymbolCandidate& candidate : candidates_.Best(count * kChoice)) {
    const bool has_rival =
        std::any_of(symbols.begin() + static_cast<ptrdiff_t>(old_count),
                    symbols.end(), [&](const FsstSymbol& added) {
                      return AreRivals(added, candidate.symbol);
                    });
    // A gain of one byte in the whole sample is chance.
    if (candidate.gain > 1 && !has_rival) {
      symbols.push_back(candidate.symbol);
    }
    if (symbols.size() == old_count + count) {
      return;
    }
  }
}

std::vector<FsstSymbol> ShortestParseTrainer::Train(int rounds) {
  size_t tried = kTriedMax;
  for (int round = 0; round < rounds; ++round) {
    Count(static_cast<size_t>(round), true);
    std::vector<FsstSymbol> next = MostValuable();
    AddCandidates(next, symbol_count_max_ + tried - next.size());
    symbols_ = std::move(next);
    tried = std::max(kTriedMin, tried * kTriedFalloffPercent / 100);
  }
  Count(0, false);
  return MostValuable();
}

}  // namespace

std::vector<FsstSymbol> TrainForShortestParse(const TrainingSample& sample,
                                              std::vector<FsstSymbol> symbols,
                                              int rounds,
                                              size_t symbol_count_max) {
  return ShortestParseTrainer(sample, std::move(symbols), symbol_count_max)
      .Train(rounds);
}

}  // namespace quire
