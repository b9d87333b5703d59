// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/parse/sequence_prices.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>

#include "codecs/base/check.h"

namespace quire {
namespace {

constexpr int32_t kBit = 256;

// Bounds on the price of a literal: the longest Huffman code of Zstandard, and
// one bit.
constexpr int32_t kLiteralPriceMax = 11 * kBit;
constexpr int32_t kLiteralPriceMin = kBit;

// 256 * log2(1 + i / 256), rounded down, for i from 0 to 255.
constexpr std::array<uint8_t, 256> MakeLogTable() {
  std::array<uint8_t, 256> table = {};
  for (uint32_t i = 0; i < table.size(); ++i) {
    // Squaring a number from 1 to 2 doubles its logarithm: reaching 2 gives the
    // next bit.
    uint64_t number = (uint64_t{256} + i) << 23;
    uint32_t logarithm = 0;
    for (int bit = 0; bit < 8; ++bit) {
      number = number * number >> 31;
      const uint32_t next = number >> 32 != 0 ? 1 : 0;
      number >>= next;
      logarithm = logarithm * 2 + next;
    }
    table[i] = static_cast<uint8_t>(logarithm);
  }
  return table;
}

// 256 * log2(number). REQUIRES: number > 0.
int32_t Log2(uint32_t number) {
  QUIRE_DCHECK(number > 0, "zero has no logarithm");
  static constexpr std::array<uint8_t, 256> kTable = MakeLogTable();
  const auto whole = static_cast<uint32_t>(std::bit_width(number)) - 1;
  const uint32_t fraction =
      whole >= 8 ? number >> (whole - 8) : number << (8 - whole);
  return static_cast<int32_t>(whole) * kBit + kTable[fraction & 0xFF];
}

// Prices by entropy. An unused code counts as half a use.
void PriceAll(std::span<const uint32_t> counts, std::span<int32_t> prices) {
  const uint32_t total = std::accumulate(counts.begin(), counts.end(), 0u);
  const int32_t total_log =
      Log2(2 * total + static_cast<uint32_t>(counts.size()));
  for (size_t i = 0; i < counts.size(); ++i) {
    prices[i] = total_log - Log2(2 * counts[i] + 1);
  }
}

}  // namespace

uint32_t LiteralRunClass(uint32_t literal_run) {
  static constexpr std::array<uint8_t, 64> kClasses = {
      0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
      16, 16, 17, 17, 18, 18, 19, 19, 20, 20, 20, 20, 21, 21, 21, 21,
      22, 22, 22, 22, 22, 22, 22, 22, 23, 23, 23, 23, 23, 23, 23, 23,
      24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24};
  return literal_run < kClasses.size()
             ? kClasses[literal_run]
             : static_cast<uint32_t>(std::bit_width(literal_run)) + 18;
}

uint32_t LiteralRunExtraBits(uint32_t run_class) {
  static constexpr std::array<uint8_t, kLiteralRunClassCount> kBits = {
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  1,  1,
      1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  return kBits[run_class];
}

uint32_t MatchLengthClass(uint32_t match_length) {
  // Classes of lengths from 32 above the minimum in steps of two: 32 33 34 35
  // 36 36 37 37 and so on, by extra bits.
  static constexpr std::array<uint8_t, 48> kClasses = {
      32, 33, 34, 35, 36, 36, 37, 37, 38, 38, 38, 38, 39, 39, 39, 39,
      40, 40, 40, 40, 40, 40, 40, 40, 41, 41, 41, 41, 41, 41, 41, 41,
      42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42};
  const uint32_t rest = match_length - kMatchLengthMin;
  if (rest < 32) {
    return rest;
  }
  return rest < 128 ? kClasses[(rest - 32) / 2]
                    : static_cast<uint32_t>(std::bit_width(rest)) + 35;
}

uint32_t MatchLengthExtraBits(uint32_t length_class) {
  static constexpr std::array<uint8_t, kMatchLengthClassCount - 32> kBits = {
      1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  return length_class < 32 ? 0 : kBits[length_class - 32];
}

void SequenceStatistics::Add(const uint8_t* literals_at,
                             const Sequence& sequence,
                             RecentDistances& recent) {
  for (uint32_t i = 0; i < sequence.literal_run; ++i) {
    ++literals[literals_at[i]];
  }
  if (sequence.match_length == 0) {
    return;
  }
  const uint32_t number =
      recent.NumberOf(sequence.distance, sequence.literal_run == 0);
  recent.Use(sequence.distance);
  ++literal_runs[LiteralRunClass(sequence.literal_run)];
  ++match_lengths[MatchLengthClass(sequence.match_length)];
  ++distances[number == 0 ? DistanceClass(sequence.distance)
                          : RecentDistanceClass(number)];
}

void SequencePrices::Set(const SequenceStatistics& statistics) {
  PriceAll(statistics.literals, literals_);
  for (int32_t& price : literals_) {
    price = std::clamp(price, kLiteralPriceMin, kLiteralPriceMax);
  }
  PriceAll(statistics.literal_runs, literal_run_classes_);
  PriceAll(statistics.match_lengths, match_length_classes_);
  PriceAll(statistics.distances, distances_);
  for (uint32_t i = 0; i < kLiteralRunClassCount; ++i) {
    literal_run_classes_[i] +=
        kBit * static_cast<int32_t>(LiteralRunExtraBits(i));
  }
  for (uint32_t i = 0; i < kMatchLengthClassCount; ++i) {
    match_length_classes_[i] +=
        kBit * static_cast<int32_t>(MatchLengthExtraBits(i));
  }
  for (int32_t i = 0; i < static_cast<int32_t>(kDistanceClassCount); ++i) {
    distances_[static_cast<size_t>(i)] += kBit * i;
  }
  for (uint32_t i = 0; i < kTableSize; ++i) {
    literal_runs_[i] = LongLiteralRun(i);
    match_lengths_[i] = LongMatch(std::max(i, kMatchLengthMin));
  }
}

int64_t SequencePrices::Total(const SequenceStatistics& statistics) const {
  const auto sum = [](std::span<const uint32_t> counts,
                      std::span<const int32_t> prices) {
    return std::transform_reduce(
        counts.begin(), counts.end(), prices.begin(), int64_t{0}, std::plus<>(),
        [](int64_t count, int64_t price) { return count * price; });
  };
  return sum(statistics.literals, literals_) +
         sum(statistics.literal_runs, literal_run_classes_) +
         sum(statistics.match_lengths, match_length_classes_) +
         sum(statistics.distances, distances_);
}

// Averages over a web crawl, successive versions of source packages and a
// collection of small pages, per mille, smoothed.
SequenceStatistics TypicalStatistics(uint64_t dictionary_size) {
  SequenceStatistics statistics;
  statistics.literal_runs = {740, 122, 55, 30, 16, 9, 6, 4, 2, 2, 1, 1,
                             1,   1,   1,  1,  1,  1, 1, 1, 1, 1, 1, 1,
                             1,   1,   1,  1,  1,  1, 1, 1, 1, 1, 1, 1};
  statistics.match_lengths = {
      4,  60, 44, 52, 36, 66, 52, 45, 45, 42, 38, 38, 20, 15, 25, 15, 13, 13,
      10, 10, 10, 7,  8,  8,  8,  10, 9,  10, 18, 20, 8,  7,  5,  7,  8,  12,
      10, 12, 17, 26, 25, 23, 26, 40, 30, 24, 3,  1,  1,  1,  1,  1,  1};
  statistics.distances = {108, 14, 2,  5,  23, 40, 55, 57, 60,
                          60,  60, 57, 50, 42, 38, 24, 8,  4};
  // All offsets in the dictionary are equally frequent: the farthest half is
  // used as much as the rest.
  const uint32_t top = DistanceClass(
      static_cast<uint32_t>(dictionary_size - dictionary_size / 4));
  uint32_t rest = 280;
  for (uint32_t i = top; i > 8 && rest > 1; --i) {
    statistics.distances[i] += (rest + 1) / 2;
    rest /= 2;
  }
  return statistics;
}

}  // namespace quire
