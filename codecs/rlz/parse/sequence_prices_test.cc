// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/parse/sequence_prices.h"

#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace quire {
namespace {

// The tables of RFC 8878, section 3.1.1.3.2.1.1: starts and extra bits of
// classes.
using Row = std::pair<uint32_t, uint32_t>;

constexpr std::array<Row, 20> kLiteralRunRows = {
    {{16, 1},    {18, 1},    {20, 1},     {22, 1},     {24, 2},
     {28, 2},    {32, 3},    {40, 3},     {48, 4},     {64, 6},
     {128, 7},   {256, 8},   {512, 9},    {1024, 10},  {2048, 11},
     {4096, 12}, {8192, 13}, {16384, 14}, {32768, 15}, {65536, 16}}};
constexpr std::array<Row, 21> kMatchLengthRows = {
    {{35, 1},     {37, 1},     {39, 1},    {41, 1},    {43, 2},    {47, 2},
     {51, 3},     {59, 3},     {67, 4},    {83, 4},    {99, 5},    {131, 7},
     {259, 8},    {515, 9},    {1027, 10}, {2051, 11}, {4099, 12}, {8195, 13},
     {16387, 14}, {32771, 15}, {65539, 16}}};

TEST(SequencePricesTest, LiteralRunClassesAreThoseOfTheFormat) {
  for (uint32_t run = 0; run < 16; ++run) {
    EXPECT_EQ(LiteralRunClass(run), run);
    EXPECT_EQ(LiteralRunExtraBits(run), 0u);
  }
  for (uint32_t i = 0; i < kLiteralRunRows.size(); ++i) {
    const auto [begin, bits] = kLiteralRunRows[i];
    EXPECT_EQ(LiteralRunClass(begin), 16 + i);
    EXPECT_EQ(LiteralRunClass(begin - 1), 15 + i);
    EXPECT_EQ(LiteralRunClass(begin + (1u << bits) - 1), 16 + i);
    EXPECT_EQ(LiteralRunExtraBits(16 + i), bits);
  }
}

TEST(SequencePricesTest, MatchLengthClassesAreThoseOfTheFormat) {
  for (uint32_t length = 3; length < 35; ++length) {
    EXPECT_EQ(MatchLengthClass(length), length - 3);
    EXPECT_EQ(MatchLengthExtraBits(length - 3), 0u);
  }
  for (uint32_t i = 0; i < kMatchLengthRows.size(); ++i) {
    const auto [begin, bits] = kMatchLengthRows[i];
    EXPECT_EQ(MatchLengthClass(begin), 32 + i);
    EXPECT_EQ(MatchLengthClass(begin - 1), 31 + i);
    EXPECT_EQ(MatchLengthClass(begin + (1u << bits) - 1), 32 + i);
    EXPECT_EQ(MatchLengthExtraBits(32 + i), bits);
  }
}

TEST(SequencePricesTest, DistanceClassesAreThoseOfTheFormat) {
  EXPECT_EQ(DistanceClass(1), 2u);
  EXPECT_EQ(DistanceClass(4), 2u);
  EXPECT_EQ(DistanceClass(5), 3u);
  EXPECT_EQ(DistanceClass((1u << 20) - 4), 19u);
  EXPECT_EQ(DistanceClass((1u << 20) - 3), 20u);
  EXPECT_EQ(DistanceClass((1u << 31) + (1u << 20)), 31u);
  EXPECT_EQ(RecentDistanceClass(1), 0u);
  EXPECT_EQ(RecentDistanceClass(2), 1u);
  EXPECT_EQ(RecentDistanceClass(3), 1u);
}

TEST(SequencePricesTest, PricesAreEntropies) {
  SequenceStatistics statistics;
  statistics.literals['a'] = 4'000'000;
  statistics.literals['b'] = 1'000'000;
  statistics.literals['c'] = 1'000'000;
  statistics.literals['d'] = 2'000'000;
  statistics.distances[20] = 1'000'000;
  statistics.distances[0] = 3'000'000;
  SequencePrices prices;
  prices.Set(statistics);
  EXPECT_NEAR(prices.Literal('a'), 256, 2);
  EXPECT_NEAR(prices.Literal('b'), 3 * 256, 2);
  EXPECT_NEAR(prices.Literal('d'), 2 * 256, 2);
  // At most the longest Huffman code.
  EXPECT_EQ(prices.Literal('z'), 11u * 256);
  EXPECT_NEAR(prices.Distance(1 << 20), (2 + 20) * 256, 2);
  EXPECT_NEAR(prices.RecentDistance(1), 256 * std::log2(4.0 / 3), 2);
}

TEST(SequencePricesTest, TablesAndFormulasMeet) {
  SequencePrices prices;
  prices.Set(TypicalStatistics(16 << 20));
  for (uint32_t length = 3; length < 1000; ++length) {
    if (MatchLengthClass(length) == MatchLengthClass(length + 1)) {
      EXPECT_EQ(prices.MatchLength(length), prices.MatchLength(length + 1));
    }
    if (LiteralRunClass(length) == LiteralRunClass(length + 1)) {
      EXPECT_EQ(prices.LiteralRun(length), prices.LiteralRun(length + 1));
    }
  }
}

// Distances into the dictionary are the expensive ones, for any size.
TEST(SequencePricesTest, TypicalStatisticsSuitTheDictionary) {
  for (const uint64_t size :
       {uint64_t{0}, uint64_t{1}, uint64_t{100}, uint64_t{64} << 10,
        uint64_t{16} << 20, uint64_t{64} << 20, uint64_t{0x7FFFFFFF}}) {
    SequencePrices prices;
    prices.Set(TypicalStatistics(size));
    if (size >= 1 << 20) {
      const auto far = static_cast<uint32_t>(size / 4 * 3);
      EXPECT_NEAR(prices.Distance(far),
                  256 * (DistanceClass(far) + std::log2(1100.0 / 140)), 100)
          << size;
      EXPECT_LT(prices.Distance(1000), prices.Distance(far));
    }
    EXPECT_LT(prices.RecentDistance(1), prices.Distance(100));
  }
}

TEST(SequenceStatisticsTest, CountsStepsAndFollowsDistances) {
  SequenceStatistics statistics;
  RecentDistances recent;
  const std::string text = "aab";
  const auto add = [&](uint32_t literal_run, uint32_t length,
                       uint32_t distance) {
    statistics.Add(AsBytes(text).data(),
                   {.literal_run = literal_run,
                    .match_length = length,
                    .distance = distance},
                   recent);
  };
  add(3, 10, 5000);
  add(1, 10, 5000);  // the last distance
  add(0, 4, 1);      // right after a copy: the second to last
  add(0, 4, 5000);   // likewise
  add(2, 4, 999);
  add(1, 0, 0);  // no copy
  EXPECT_EQ(statistics.literals['a'], 2u + 1 + 2 + 1);
  EXPECT_EQ(statistics.literals['b'], 1u);
  EXPECT_EQ(statistics.distances[0], 2u + 1);
  EXPECT_EQ(statistics.distances[DistanceClass(5000)], 1u);
  EXPECT_EQ(statistics.distances[DistanceClass(999)], 1u);
  EXPECT_EQ(statistics.match_lengths[7], 2u);
  EXPECT_EQ(statistics.match_lengths[1], 3u);
  EXPECT_EQ(statistics.literal_runs[0], 2u);
}

TEST(RecentDistancesTest, FollowTheFormat) {
  RecentDistances recent;
  EXPECT_EQ(recent.Get(1, false), 1u);
  EXPECT_EQ(recent.Get(3, false), 8u);
  EXPECT_EQ(recent.Get(1, true), 4u);
  EXPECT_EQ(recent.Get(3, true), 0u);
  recent.Use(100);
  EXPECT_EQ(recent.distances, (std::array<uint32_t, 3>{100, 1, 4}));
  recent.Use(4);
  EXPECT_EQ(recent.distances, (std::array<uint32_t, 3>{4, 100, 1}));
  recent.Use(100);
  EXPECT_EQ(recent.distances, (std::array<uint32_t, 3>{100, 4, 1}));
  EXPECT_EQ(recent.Get(3, true), 99u);
  EXPECT_EQ(recent.NumberOf(99, true), 3u);
  EXPECT_EQ(recent.NumberOf(99, false), 0u);
  EXPECT_EQ(recent.NumberOf(100, true), 0u);
}

}  // namespace
}  // namespace quire
