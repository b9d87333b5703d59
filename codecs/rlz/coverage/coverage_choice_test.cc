// SPDX-License-Identifier: Apache-2.0
//
// The parts that choose a coverage dictionary, each on its own.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "codecs/codec_test_inputs.h"
#include "codecs/rlz/coverage/block_cost.h"
#include "codecs/rlz/coverage/kmer_sampler.h"
#include "codecs/rlz/coverage/priced_runs.h"
#include "codecs/rlz/coverage/repeat_table.h"

namespace quire {
namespace {

std::vector<SampledKmer> Sample(const std::string& text, uint32_t interval) {
  std::vector<SampledKmer> kmers;
  SampleKmers(AsBytes(text), interval, kmers);
  return kmers;
}

TEST(KmerSamplerTest, PicksOneInAnInterval) {
  TestRandom random(1);
  const std::string text = RandomText(random, 1 << 20, 100000);
  for (const uint32_t interval : {1u, 8u, 32u, 200u}) {
    const size_t count = Sample(text, interval).size();
    EXPECT_LE(count, text.size() / interval * 11 / 10) << interval;
    EXPECT_GE(count, text.size() / interval * 6 / 10) << interval;
  }
}

TEST(KmerSamplerTest, PicksByContents) {
  TestRandom random(2);
  const std::string same = RandomText(random, 20000);
  const auto here = Sample(RandomText(random, 333) + same, 16);
  const auto there = Sample(RandomText(random, 7777) + same, 16);
  std::set<std::pair<uint64_t, uint32_t>> picked;
  for (const SampledKmer& kmer : here) {
    picked.emplace(kmer.hash, kmer.end - 333);
  }
  size_t found = 0;
  size_t count = 0;
  for (const SampledKmer& kmer : there) {
    // Those that begin in what is the same, and not right at its beginning,
    // where what lies before may have pushed one aside.
    if (kmer.end >= 7777 + 200) {
      ++count;
      found += picked.count({kmer.hash, kmer.end - 7777});
    }
  }
  EXPECT_GT(count, 500);
  EXPECT_EQ(found, count);
}

TEST(KmerSamplerTest, HashesTheBytesOfTheKmer) {
  TestRandom random(3);
  const std::string text =
      EditedPieces(random, RandomText(random, 3000), 60000);
  std::map<uint64_t, std::string> bytes;
  uint32_t end = 0;
  for (const SampledKmer& kmer : Sample(text, 4)) {
    ASSERT_GT(kmer.end, end);
    end = kmer.end;
    ASSERT_GE(end, kKmerSizeBytes);
    ASSERT_LE(end, text.size());
    const std::string found = text.substr(end - kKmerSizeBytes, kKmerSizeBytes);
    EXPECT_EQ(bytes.emplace(kmer.hash, found).first->second, found);
  }
}

TEST(KmerSamplerTest, IsBoundedWhateverComes) {
  TestRandom random(4);
  for (const TestInput& input : TestInputs(random, 65536, "abcdefgh")) {
    for (const uint32_t interval : {1u, 2u, 16u, 64u}) {
      EXPECT_LE(Sample(input.text, interval).size(),
                SampledKmerCountMax(65536, interval))
          << input.name << interval;
    }
  }
  for (int value = 0; value < 256; ++value) {
    const std::string run(10000, static_cast<char>(value));
    EXPECT_LE(Sample(run, 32).size(), SampledKmerCountMax(10000, 32));
  }
  EXPECT_TRUE(Sample(std::string(kKmerSizeBytes - 1, 'x'), 1).empty());
  EXPECT_TRUE(Sample("", 1).empty());
}

TEST(BlockCostTest, RepeatedTextIsNearlyFree) {
  TestRandom random(5);
  const std::string text = RandomText(random, 8000);
  BlockCost cost(65536);
  cost.Estimate(AsBytes(text + text));
  const uint32_t first = cost.Bits(0, 8000);
  EXPECT_GT(first, 8000 * 2);
  EXPECT_LT(first, 8000 * 6);
  EXPECT_LT(cost.Bits(8000, 16000), 200);
  // Of a block before it knows nothing.
  cost.Estimate(AsBytes(text));
  EXPECT_EQ(cost.Bits(0, 8000), first);
}

TEST(BlockCostTest, RandomBytesCostEightBitsAndFewValuesLess) {
  TestRandom random(6);
  const std::string bytes = RandomBytes(random, 60000);
  BlockCost cost(65536);
  cost.Estimate(AsBytes(bytes));
  EXPECT_NEAR(cost.Bits(0, 60000), 480000, 10000);
  EXPECT_NEAR(cost.Bits(1000, 2000), 8000, 400);
  std::string values = bytes;
  for (char& value : values) {
    value = static_cast<char>(value & 15);
  }
  cost.Estimate(AsBytes(values));
  EXPECT_LT(cost.Bits(0, 60000), 280000);
}

TEST(BlockCostTest, CostsAddUp) {
  TestRandom random(7);
  BlockCost cost(65536);
  for (const TestInput& input : TestInputs(random, 30000, "some dictionary")) {
    cost.Estimate(AsBytes(input.text));
    EXPECT_EQ(cost.Bits(0, 0), 0);
    uint32_t sum = 0;
    for (size_t i = 0; i < input.text.size(); i += 100) {
      sum += cost.Bits(i, i + 100);
    }
    EXPECT_LE(sum, cost.Bits(0, 30000)) << input.name;
    EXPECT_GE(sum + 300, cost.Bits(0, 30000)) << input.name;
  }
  cost.Estimate({});
  EXPECT_EQ(cost.Bits(0, 0), 0);
}

TEST(BlockCostTest, ManyBlocksAreAsOne) {
  TestRandom random(8);
  BlockCost cost(4096);
  BlockCost fresh(4096);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = RandomText(random, 1 + RandomBelow(random, 600));
    cost.Estimate(AsBytes(text));
    if (i % 100 == 0) {
      fresh = BlockCost(4096);
      fresh.Estimate(AsBytes(text));
      ASSERT_EQ(cost.Bits(0, text.size()), fresh.Bits(0, text.size())) << i;
    }
  }
}

TEST(RepeatTableTest, AddsUpAllButTheFirst) {
  RepeatTable table(1024, 65536);
  TestRandom random(9);
  std::vector<uint64_t> hashes(500);
  for (uint64_t& hash : hashes) {
    hash = random();
  }
  for (uint32_t round = 0; round < 5; ++round) {
    for (const uint64_t hash : hashes) {
      table.Add(hash, 100 + round);
    }
  }
  size_t exact = 0;
  for (const uint64_t hash : hashes) {
    const RepeatTable::Slot slot = table.Find(hash);
    exact += slot != RepeatTable::kNoSlot && table.Worth(slot) == 410 ? 1 : 0;
  }
  // Some were forgotten for another with the same place.
  EXPECT_GT(exact, 480);
  EXPECT_EQ(table.Find(random()), RepeatTable::kNoSlot);
}

TEST(RepeatTableTest, KeepsWhatIsWorthMost) {
  RepeatTable table(256, 1 << 16);
  TestRandom random(10);
  std::vector<uint64_t> dear(64);
  for (uint64_t& hash : dear) {
    hash = random();
    for (int i = 0; i < 10; ++i) {
      table.Add(hash, 200);
    }
  }
  for (int i = 0; i < 10000; ++i) {
    const uint64_t cheap = random();
    table.Add(cheap, 50);
    table.Add(cheap, 50);
  }
  size_t found = 0;
  for (const uint64_t hash : dear) {
    found += table.Find(hash) != RepeatTable::kNoSlot ? 1 : 0;
  }
  EXPECT_GT(found, 60);
}

TEST(RepeatTableTest, WhatIsTakenIsWorthNothingUntilGivenBack) {
  RepeatTable table(64, 64);
  for (int i = 0; i < 3; ++i) {
    table.Add(77, UINT32_MAX);
  }
  const RepeatTable::Slot slot = table.Find(77);
  ASSERT_NE(slot, RepeatTable::kNoSlot);
  const uint32_t worth = table.Worth(slot);
  EXPECT_GT(worth, uint32_t{1} << 30);
  table.Take(slot);
  EXPECT_EQ(table.Worth(slot), 0);
  table.GiveBack(slot);
  EXPECT_EQ(table.Worth(slot), worth);
}

// All choices of sets of k-mers that are runs, tried one by one.
int64_t BestGain(const std::vector<WorthyKmer>& kmers, int64_t price,
                 int64_t start_size) {
  constexpr int64_t kSize = kKmerSizeBytes;
  std::vector<int64_t> best(kmers.size() + 1, 0);
  for (size_t end = 1; end <= kmers.size(); ++end) {
    best[end] = best[end - 1];
    int64_t inside = 0;
    for (size_t i = end; i-- > 0;) {
      // The run is [i, end).
      const int64_t start =
          int64_t{kmers[i].worth} * kSize - price * (kSize + start_size);
      size_t before = i;
      while (before > 0 && kmers[before - 1].end + kSize > kmers[i].end) {
        --before;
      }
      best[end] = std::max(best[end], best[before] + start + inside);
      if (i > 0) {
        const int64_t gap = kmers[i].end - kmers[i - 1].end;
        inside += kmers[i].worth * std::min(gap, kSize) - price * gap;
      }
    }
  }
  return best.back();
}

TEST(PricedRunsTest, GainAsMuchAsCanBe) {
  const uint64_t seed = 12;
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  TestRandom random(seed);
  RunFinder finder(64);
  for (int round = 0; round < 2000; ++round) {
    std::vector<WorthyKmer> kmers(RandomBelow(random, 30));
    uint32_t end = kKmerSizeBytes - 1;
    for (WorthyKmer& kmer : kmers) {
      end += 1 + static_cast<uint32_t>(RandomBelow(random, 80));
      kmer = {.end = end,
              .worth = static_cast<uint32_t>(RandomBelow(random, 1000))};
    }
    const auto price = static_cast<uint32_t>(1 + RandomBelow(random, 900));
    const auto start = static_cast<uint32_t>(RandomBelow(random, 100));
    int64_t gain = 0;
    uint32_t last_end = 0;
    for (const PricedRun& run : finder.Find(kmers, price, start)) {
      EXPECT_GT(run.gain, 0);
      EXPECT_GE(run.begin, last_end);
      EXPECT_LT(run.kmer_begin, run.kmer_end);
      EXPECT_EQ(run.begin, kmers[run.kmer_begin].end - kKmerSizeBytes);
      EXPECT_EQ(run.end, kmers[run.kmer_end - 1].end);
      last_end = run.end;
      gain += run.gain;
    }
    ASSERT_EQ(gain, BestGain(kmers, price, start)) << round;
  }
}

TEST(PricedRunsTest, GapsAreBridgedWhereThatIsCheaper) {
  RunFinder finder(4);
  std::vector<WorthyKmer> kmers = {{.end = 1000, .worth = 500},
                                   {.end = 1100, .worth = 500}};
  EXPECT_EQ(finder.Find(kmers, 10, 1000).size(), 1);
  EXPECT_EQ(finder.Find(kmers, 10, 20).size(), 2);
  EXPECT_EQ(finder.Find(kmers, 600, 0).size(), 0);
  EXPECT_EQ(finder.Find({}, 10, 0).size(), 0);
}

}  // namespace
}  // namespace quire
