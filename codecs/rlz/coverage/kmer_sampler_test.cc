// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/coverage/kmer_sampler.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "codecs/base/bytes.h"
#include "testing/codecs/codec_test_inputs.h"

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

}  // namespace
}  // namespace quire
