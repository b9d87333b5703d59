// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/training/symbol_candidates.h"

#include <map>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

std::vector<std::pair<uint64_t, uint32_t>> BytesAndGains(
    const std::vector<SymbolCandidate>& candidates) {
  std::vector<std::pair<uint64_t, uint32_t>> all;
  for (const SymbolCandidate& candidate : candidates) {
    all.emplace_back(candidate.symbol.bytes, candidate.gain);
  }
  return all;
}

using Gains = std::vector<std::pair<uint64_t, uint32_t>>;

TEST(SymbolCandidatesTest, SumsGainsAndSortsThem) {
  SymbolCandidates candidates(4);
  candidates.Add({.bytes = 'a', .size = 1}, 3);
  candidates.Add({.bytes = 'b', .size = 1}, 4);
  candidates.Add({.bytes = 'a', .size = 1}, 2);
  // The same word as 'a', with a larger size.
  candidates.Add({.bytes = 'a', .size = 2}, 1);
  EXPECT_EQ(BytesAndGains(candidates.Best(10)),
            (Gains{{'a', 5}, {'b', 4}, {'a', 1}}));
  EXPECT_EQ(BytesAndGains(candidates.Best(1)), (Gains{{'a', 5}}));
  EXPECT_TRUE(candidates.Best(0).empty());
}

TEST(SymbolCandidatesTest, OrdersEqualGainsBySizeAndBytes) {
  SymbolCandidates candidates(4);
  candidates.Add({.bytes = 'd', .size = 2}, 1);
  candidates.Add({.bytes = 'c', .size = 1}, 1);
  candidates.Add({.bytes = 'a', .size = 3}, 1);
  candidates.Add({.bytes = 'b', .size = 1}, 1);
  EXPECT_EQ(BytesAndGains(candidates.Best(10)),
            (Gains{{'b', 1}, {'c', 1}, {'d', 1}, {'a', 1}}));
}

TEST(SymbolCandidatesTest, LeavesOutWhatIsExcludedOrGainsNothing) {
  SymbolCandidates candidates(4);
  candidates.Add({.bytes = 'a', .size = 1}, 1);
  candidates.Add({.bytes = 'b', .size = 1}, 0);
  candidates.Exclude({.bytes = 'a', .size = 1});
  candidates.Exclude({.bytes = 'z', .size = 1});
  EXPECT_TRUE(candidates.Best(10).empty());
  candidates.Add({.bytes = 'a', .size = 1}, 2);
  EXPECT_EQ(BytesAndGains(candidates.Best(10)), (Gains{{'a', 2}}));
  candidates.Clear();
  EXPECT_TRUE(candidates.Best(10).empty());
}

TEST(SymbolCandidatesTest, IgnoresNewOnesWhenFull) {
  SymbolCandidates candidates(4);
  for (uint64_t i = 0; i < 100; ++i) {
    candidates.Add({.bytes = i, .size = 8}, 1);
  }
  EXPECT_EQ(candidates.Best(100).size(), 12u);
  candidates.Add({.bytes = 0, .size = 8}, 1);
  EXPECT_EQ(candidates.Best(1)[0].gain, 2u);
}

TEST(SymbolCandidatesTest, AgreesWithAMap) {
  TestRandom random(1);
  SymbolCandidates candidates(12);
  std::map<std::pair<uint64_t, uint8_t>, uint32_t> sums;
  for (int i = 0; i < 20000; ++i) {
    const auto size = static_cast<uint8_t>(1 + RandomBelow(random, 8));
    const uint64_t bytes = RandomBelow(random, 200);
    const auto gain = static_cast<uint32_t>(1 + RandomBelow(random, 9));
    candidates.Add({bytes, size}, gain);
    sums[{bytes, size}] += gain;
  }
  const auto best = candidates.Best(sums.size() + 1);
  EXPECT_EQ(best.size(), sums.size());
  for (const SymbolCandidate& candidate : best) {
    const auto& [bytes, size] = candidate.symbol;
    EXPECT_EQ(candidate.gain, (sums[{bytes, size}]));
  }
}

}  // namespace
}  // namespace quire
