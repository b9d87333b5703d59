// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/coverage/priced_runs.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "codecs/rlz/coverage/kmer_sampler.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

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
