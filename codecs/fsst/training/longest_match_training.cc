// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/training/longest_match_training.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>

#include "codecs/base/endian.h"
#include "codecs/fsst/table/symbol_matcher.h"
#include "codecs/fsst/training/symbol_candidates.h"

namespace quire {
namespace {

// Symbols of eight bytes exist from the fourth round on.
constexpr int kGrowingRoundsMax = 4;
// Symbols tried beyond a full table: the number in the first round, and the
// fraction of it in each later round.
constexpr size_t kTriedMax = 100;
constexpr size_t kTriedMin = 2;
constexpr size_t kTriedFalloffPercent = 60;
// Smallest part of the sample that a round encodes.
constexpr size_t kRoundSampleBytesMin = 4 << 10;
constexpr int kCandidatesLog2 = 15;
constexpr size_t kPairsAtOnce = sizeof(uint64_t) / sizeof(uint16_t);
// Strings as rare as one in this many bytes are not tried.
constexpr size_t kRareBytes = 64 << 10;

FsstSymbol Join(const FsstSymbol& first, const FsstSymbol& second) {
  return {.bytes = first.bytes | second.bytes << (8 * first.size),
          .size = static_cast<uint8_t>(first.size + second.size)};
}

class LongestMatchTrainer {
 public:
  LongestMatchTrainer(const TrainingSample& sample, size_t symbol_count_max);

  std::vector<FsstSymbol> Train(int rounds);

 private:
  // Codes below escape_begin_ are indexes in symbols_; the others are the bytes
  // of the sample, escaped, in ascending order.
  size_t CodeOfByte(size_t byte) const {
    return escape_begin_ + byte_ranks_[byte];
  }

  bool IsEscape(size_t code) const { return code >= escape_begin_; }

  FsstSymbol StringOf(size_t code) const {
    return IsEscape(code)
               ? FsstSymbol{.bytes = bytes_[code - escape_begin_], .size = 1}
               : symbols_[code];
  }

  uint32_t SizeOf(size_t code) const { return IsEscape(code) ? 2 : 1; }

  // Encodes `piece_count` pieces and counts codes and pairs. With `growing` it
  // also counts the first byte of each symbol; otherwise symbols could only
  // grow (section 4.2).
  void Count(size_t piece_count, bool growing);
  template <bool kGrowing>
  void CountPiece(ByteView piece);

  // Calls visit(first, second, count) for all pairs that are short and frequent
  // enough to become symbols.
  template <typename Visit>
  void ForEachPair(Visit visit) const;

  void Grow(size_t symbol_count);
  // Size of the codes for the symbol's bytes without that symbol.
  uint32_t SizeWithout(const FsstSymbol& symbol) const;
  // Marks the others in is_dropped_.
  std::vector<FsstSymbol> MostValuable();
  void Exchange(size_t tried_count);

  const TrainingSample& sample_;
  const size_t symbol_count_max_;
  std::vector<uint8_t> bytes_;  // bytes that occur
  std::array<uint16_t, 256> byte_ranks_ = {};

  std::vector<FsstSymbol> symbols_;
  SymbolMatcher matcher_;
  size_t escape_begin_ = 0;
  size_t code_count_ = 0;
  size_t row_size_ = 0;  // code_count_, rounded up to kPairsAtOnce
  uint16_t pair_count_min_ = 2;
  std::vector<uint32_t> code_counts_;
  // By first * row_size_ + second; stops at the largest value.
  std::vector<uint16_t> pair_counts_;
  std::vector<bool> is_dropped_;  // by code
  SymbolCandidates candidates_;
};

LongestMatchTrainer::LongestMatchTrainer(const TrainingSample& sample,
                                         size_t symbol_count_max)
    : sample_(sample),
      symbol_count_max_(symbol_count_max),
      candidates_(kCandidatesLog2) {
  std::array<bool, 256> occurs = {};
  for (size_t i = 0; i < sample.piece_count(); ++i) {
    for (const uint8_t byte : sample.piece(i)) {
      occurs[byte] = true;
    }
  }
  for (size_t byte = 0; byte < occurs.size(); ++byte) {
    if (occurs[byte]) {
      byte_ranks_[byte] = static_cast<uint16_t>(bytes_.size());
      bytes_.push_back(static_cast<uint8_t>(byte));
    }
  }
}

template <bool kGrowing>
void LongestMatchTrainer::CountPiece(ByteView piece) {
  const uint8_t* const text = piece.data();
  // row of the pairs that begin with the previous code
  uint16_t* row = nullptr;
  for (size_t at = 0; at < piece.size();) {
    const auto word = LoadLittleEndian<uint64_t>(text + at);
    const auto match = matcher_.Longest(word, piece.size() - at);
    const size_t code = match.index != SymbolMatcher::kNone
                            ? match.index
                            : CodeOfByte(text[at]);
    ++code_counts_[code];
    if (row != nullptr) {
      row[code] = static_cast<uint16_t>(row[code] + (row[code] != 0xffff));
    }
    if constexpr (kGrowing) {
      if (match.size > 1) {
        const size_t byte = CodeOfByte(text[at]);
        ++code_counts_[byte];
        if (row != nullptr) {
          row[byte] = static_cast<uint16_t>(row[byte] + (row[byte] != 0xffff));
        }
      }
    }
    row = &pair_counts_[code * row_size_];
    at += match.size;
  }
}

void LongestMatchTrainer::Count(size_t piece_count, bool growing) {
  matcher_.SetSymbols(symbols_);
  escape_begin_ = symbols_.size();
  code_count_ = escape_begin_ + bytes_.size();
  code_counts_.assign(code_count_, 0);
  row_size_ = (code_count_ + kPairsAtOnce - 1) / kPairsAtOnce * kPairsAtOnce;
  pair_counts_.assign(code_count_ * row_size_, 0);
  is_dropped_.assign(code_count_, false);
  for (size_t i = 0; i < piece_count; ++i) {
    const ByteView piece =
        sample_.piece(i * sample_.piece_count() / piece_count);
    if (growing) {
      CountPiece<true>(piece);
    } else {
      CountPiece<false>(piece);
    }
  }
  pair_count_min_ =
      static_cast<uint16_t>(2 + sample_.size_bytes() * piece_count /
                                    sample_.piece_count() / kRareBytes);
}

template <typename Visit>
void LongestMatchTrainer::ForEachPair(Visit visit) const {
  for (size_t first = 0; first < code_count_; ++first) {
    if (code_counts_[first] < pair_count_min_ || is_dropped_[first]) {
      continue;
    }
    const size_t size_max = kFsstSymbolSizeMax - StringOf(first).size;
    const uint16_t* const row = &pair_counts_[first * row_size_];
    for (size_t four = 0; four < row_size_; four += kPairsAtOnce) {
      // Most pairs never occur.
      uint64_t counts;
      std::memcpy(&counts, row + four, sizeof(counts));
      if (counts == 0) {
        continue;
      }
      for (size_t second = four; second < four + kPairsAtOnce; ++second) {
        if (row[second] >= pair_count_min_ && !is_dropped_[second] &&
            StringOf(second).size <= size_max) {
          visit(first, second, uint32_t{row[second]});
        }
      }
    }
  }
}

void LongestMatchTrainer::Grow(size_t symbol_count) {
  candidates_.Clear();
  for (size_t code = 0; code < code_count_; ++code) {
    if (code_counts_[code] > 0) {
      const FsstSymbol string = StringOf(code);
      // A single byte saves an escape wherever it occurs, and longer symbols
      // grow from it: it counts as eight bytes.
      const uint32_t weight = string.size == 1 ? 16 : 2 * string.size - 1u;
      candidates_.Add(string, code_counts_[code] * weight);
    }
  }
  ForEachPair([&](size_t first, size_t second, uint32_t count) {
    const FsstSymbol string = Join(StringOf(first), StringOf(second));
    candidates_.Add(string, count * (2 * string.size - 1u));
  });
  symbols_.clear();
  for (const SymbolCandidate& candidate : candidates_.Best(symbol_count)) {
    symbols_.push_back(candidate.symbol);
  }
}

uint32_t LongestMatchTrainer::SizeWithout(const FsstSymbol& symbol) const {
  if (symbol.size == 1) {
    return 2;
  }
  uint32_t size = 0;
  // Only the first step can be the symbol itself.
  size_t limit = symbol.size - size_t{1};
  for (size_t at = 0; at < symbol.size; limit = kFsstSymbolSizeMax) {
    const auto match = matcher_.Longest(
        symbol.bytes >> (8 * at), std::min(limit, size_t{symbol.size} - at));
    size += match.index != SymbolMatcher::kNone ? 1 : 2;
    at += match.size;
  }
  return size;
}

std::vector<FsstSymbol> LongestMatchTrainer::MostValuable() {
  // Negated losses: the largest loss comes first.
  std::vector<std::tuple<int64_t, int64_t, size_t>> order;
  for (size_t code = 0; code < symbols_.size(); ++code) {
    const int64_t count = code_counts_[code];
    const int64_t loss = count * (int64_t{SizeWithout(symbols_[code])} - 1);
    order.emplace_back(-loss, -count, code);
  }
  std::sort(order.begin(), order.end());
  std::vector<FsstSymbol> kept;
  for (const auto& [loss, count, code] : order) {
    if (loss < 0 && kept.size() < symbol_count_max_) {
      kept.push_back(symbols_[code]);
    } else {
      is_dropped_[code] = true;
    }
  }
  return kept;
}

void LongestMatchTrainer::Exchange(size_t tried_count) {
  std::vector<FsstSymbol> next = MostValuable();
  candidates_.Clear();
  for (size_t code = escape_begin_; code < code_count_; ++code) {
    if (code_counts_[code] > 0) {
      candidates_.Add(StringOf(code), code_counts_[code]);
    }
  }
  ForEachPair([&](size_t first, size_t second, uint32_t count) {
    candidates_.Add(Join(StringOf(first), StringOf(second)),
                    count * (SizeOf(first) + SizeOf(second) - 1));
  });
  for (const FsstSymbol& symbol : symbols_) {
    candidates_.Exclude(symbol);
  }
  const size_t count = symbol_count_max_ + tried_count - next.size();
  for (const SymbolCandidate& candidate : candidates_.Best(count)) {
    next.push_back(candidate.symbol);
  }
  symbols_ = std::move(next);
}

std::vector<FsstSymbol> LongestMatchTrainer::Train(int rounds) {
  const size_t pieces = sample_.piece_count();
  if (pieces == 0) {
    return {};
  }
  const size_t pieces_min = std::max<size_t>(
      1, std::min(pieces, pieces * kRoundSampleBytesMin /
                              std::max<size_t>(1, sample_.size_bytes())));
  const int growing_rounds = std::min(rounds, kGrowingRoundsMax);
  const int partial_rounds = rounds / 2;
  size_t tried = kTriedMax;
  for (int round = 0; round < rounds; ++round) {
    size_t part = pieces;
    if (round < partial_rounds) {
      // From a tenth of the sample to all of it.
      part = pieces / 10 + pieces * 9 / 10 * static_cast<size_t>(round) /
                               static_cast<size_t>(partial_rounds);
      part = std::clamp(part, pieces_min, pieces);
    }
    const bool growing = round < growing_rounds;
    Count(part, growing);
    if (growing) {
      const bool full = round + 1 == growing_rounds && growing_rounds < rounds;
      Grow(symbol_count_max_ + (full ? tried : 0));
    } else {
      tried = std::max(kTriedMin, tried * kTriedFalloffPercent / 100);
      Exchange(tried);
    }
  }
  Count(pieces, false);
  return MostValuable();
}

}  // namespace

std::vector<FsstSymbol> TrainForLongestMatch(const TrainingSample& sample,
                                             int rounds,
                                             size_t symbol_count_max) {
  return LongestMatchTrainer(sample, symbol_count_max).Train(rounds);
}

}  // namespace quire
