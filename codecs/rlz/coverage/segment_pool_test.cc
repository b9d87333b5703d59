// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/coverage/segment_pool.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

#include "codecs/base/bytes.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

constexpr size_t kBlockSize = 8192;
constexpr uint32_t kInterval = 16;
constexpr uint64_t kDictionarySize = 32768;

class SegmentPoolTest : public ::testing::Test {
 protected:
  static std::vector<SampledKmer> Sample(const std::string& text) {
    std::vector<SampledKmer> kmers;
    SampleKmers(AsBytes(text), kInterval, kmers);
    return kmers;
  }

  // Makes each k-mer of the text worth so much. REQUIRES: nothing was added
  // yet.
  void MakeWorth(const std::string& text, uint32_t worth) {
    for (const SampledKmer& kmer : Sample(text)) {
      // The first time counts nothing.
      table_.Add(kmer.hash, worth);
      table_.Add(kmer.hash, worth);
    }
  }

  void Add(const std::string& block) {
    pool_.Add(AsBytes(block), Sample(block));
  }

  // Number of the text's k-mers that are worth something now.
  size_t CountWorthy(const std::string& text) const {
    size_t count = 0;
    for (const SampledKmer& kmer : Sample(text)) {
      const RepeatTable::Slot slot = table_.Find(kmer.hash);
      count += slot != RepeatTable::kNoSlot && table_.Worth(slot) > 0 ? 1 : 0;
    }
    return count;
  }

  TestRandom random_{21};
  RepeatTable table_{1 << 15, 1 << 16};
  SegmentPool pool_{kDictionarySize, kBlockSize, kInterval, 2, &table_};
};

TEST_F(SegmentPoolTest, TakesWhatIsWorthItsPrice) {
  const std::string worthy = RandomText(random_, 4000);
  MakeWorth(worthy, 100);
  Add(RandomBytes(random_, 2000) + worthy + RandomBytes(random_, 2000));
  Add(RandomBytes(random_, kBlockSize));
  const std::string taken = pool_.Take();
  // From the beginning of a k-mer to the end of one.
  EXPECT_TRUE(absl::StrContains(worthy, taken));
  EXPECT_GT(taken.size(), worthy.size() * 9 / 10);
}

TEST_F(SegmentPoolTest, IsEmptyWhereNothingIsWorthAPlace) {
  Add(RandomBytes(random_, kBlockSize));
  Add("");
  // Too short to be a segment.
  const std::string piece = RandomText(random_, 250);
  MakeWorth(piece, 100000);
  Add(piece + RandomBytes(random_, 4000));
  // It is worth something still, to other blocks.
  EXPECT_GT(CountWorthy(piece), 0u);
  EXPECT_EQ(pool_.Take(), "");
}

TEST_F(SegmentPoolTest, TakesTheSameTextOnce) {
  const std::string first = RandomText(random_, 4000);
  const std::string second = RandomText(random_, 4000);
  MakeWorth(first, 100);
  MakeWorth(second, 100);
  EXPECT_GT(CountWorthy(first), 100u);
  Add(first + first);
  Add(second);
  Add(first);
  EXPECT_EQ(CountWorthy(first), 0u);
  const std::string taken = pool_.Take();
  EXPECT_LE(taken.size(), first.size() + second.size());
  // In the order in which they came.
  const size_t at_first = taken.find(first.substr(1000, 2000));
  const size_t at_second = taken.find(second.substr(1000, 2000));
  ASSERT_NE(at_first, std::string::npos);
  ASSERT_NE(at_second, std::string::npos);
  EXPECT_LT(at_first, at_second);
}

TEST_F(SegmentPoolTest, KeepsWhatIsWorthMost) {
  std::vector<std::string> dear;
  std::vector<std::string> cheap;
  std::vector<std::string> all;
  for (int i = 0; i < 30; ++i) {
    all.push_back(RandomText(random_, kBlockSize));
    const bool is_dear = i % 10 == 5;
    MakeWorth(all.back(), is_dear ? 400 : 20);
    (is_dear ? dear : cheap).push_back(all.back());
  }
  for (const std::string& block : all) {
    Add(block);
  }
  const std::string taken = pool_.Take();
  EXPECT_LE(taken.size(), kDictionarySize);
  EXPECT_GT(taken.size(), kDictionarySize * 9 / 10);
  for (const std::string& block : dear) {
    EXPECT_TRUE(absl::StrContains(taken, block.substr(1000, 6000)));
    EXPECT_EQ(CountWorthy(block), 0u);
  }
  // Removed k-mers are worth as much as before to others.
  size_t worthy_count = 0;
  for (const std::string& block : cheap) {
    worthy_count += CountWorthy(block) * 10 > Sample(block).size() * 9 ? 1 : 0;
  }
  EXPECT_GE(worthy_count, cheap.size() - 3);
}

TEST_F(SegmentPoolTest, IsFilledWhereAllIsWorthTheSame) {
  std::vector<std::string> blocks;
  for (int i = 0; i < 40; ++i) {
    blocks.push_back(RandomText(random_, kBlockSize));
    MakeWorth(blocks.back(), 50);
  }
  for (const std::string& block : blocks) {
    Add(block);
  }
  const size_t size = pool_.Take().size();
  EXPECT_LE(size, kDictionarySize);
  EXPECT_GT(size, kDictionarySize * 3 / 4);
}

TEST(SegmentPoolSizeTest, TakesAnySize) {
  TestRandom random(22);
  const std::string block = RandomText(random, kBlockSize);
  std::vector<SampledKmer> kmers;
  SampleKmers(AsBytes(block), kInterval, kmers);
  for (const uint64_t size : {0u, 1u, 100u, 256u, 5000u}) {
    RepeatTable table(1024, 65536);
    for (const SampledKmer& kmer : kmers) {
      table.Add(kmer.hash, 100);
      table.Add(kmer.hash, 100);
    }
    SegmentPool pool(size, kBlockSize, kInterval, 2, &table);
    for (int i = 0; i < 3; ++i) {
      pool.Add(AsBytes(block), kmers);
    }
    EXPECT_LE(pool.Take().size(), size);
    EXPECT_GT(SegmentPool::MemoryBytesFor(size, kBlockSize, kInterval), size);
  }
}

}  // namespace
}  // namespace quire
