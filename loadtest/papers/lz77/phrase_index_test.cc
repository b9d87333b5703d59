// SPDX-License-Identifier: GPL-3.0-or-later
#include "loadtest/papers/lz77/phrase_index.h"

#include <algorithm>

#include "loadtest/papers/lz77/lz77_test_blocks.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

class PhraseIndexTest : public ::testing::Test {
 protected:
  void Make(const std::string& text) {
    stored_ = Lz4Block(text);
    text_size_ = text.size();
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const PhraseBlock block,
        PhraseBlock::Check(stored_, text_size_, kLz4MatchSizeMin));
    places_ = block.Places();
  }

  PhrasePlace Expected(uint32_t text_offset) const {
    return *(std::ranges::upper_bound(places_, text_offset, {},
                                      &PhrasePlace::text_offset) -
             1);
  }

  std::vector<uint8_t> stored_;
  size_t text_size_ = 0;
  std::vector<PhrasePlace> places_;
};

TEST_F(PhraseIndexTest, ExactFormsFindThePhraseOfEachByte) {
  TestRandom random(3);
  for (const size_t size : {size_t{1}, size_t{20'000}}) {
    for (const TestInput& input :
         TestInputs(random, size, RandomText(random, 4096))) {
      Make(input.text);
      const PlainPhraseIndex plain(places_, text_size_, stored_.size());
      const SparsePhraseIndex sparse(places_, text_size_, stored_.size());
      for (uint32_t i = 0; i < text_size_; ++i) {
        ASSERT_EQ(plain.Find(i), Expected(i)) << input.name << " " << i;
        ASSERT_EQ(sparse.Find(i), Expected(i)) << input.name << " " << i;
        ASSERT_EQ(plain.StartOf(plain.PhraseOf(i)), Expected(i).text_offset);
      }
    }
  }
}

// The phrase found begins before the offset, within the largest distance.
TEST_F(PhraseIndexTest, SampledFormsFindAPhraseCloseBefore) {
  TestRandom random(4);
  Make(RandomText(random, 10'000));
  const SampledPhraseIndex sampled(places_, text_size_, stored_.size(), 8);
  const GridPhraseIndex grid(places_, text_size_, stored_.size(), 6);
  for (uint32_t i = 0; i < text_size_; ++i) {
    const auto phrase = std::ranges::find(places_, Expected(i));
    const auto sample = std::ranges::find(places_, sampled.Find(i));
    ASSERT_TRUE(sample != places_.end() && sample <= phrase);
    ASSERT_LT(phrase - sample, 8);
    ASSERT_EQ(grid.Find(i), Expected(i / 64 * 64));
  }
}

TEST_F(PhraseIndexTest, SparserFormsTakeLessMemory) {
  TestRandom random(5);
  Make(RandomText(random, 200'000));
  const PlainPhraseIndex plain(places_, text_size_, stored_.size());
  const SparsePhraseIndex sparse(places_, text_size_, stored_.size());
  const SampledPhraseIndex sampled(places_, text_size_, stored_.size(), 64);
  EXPECT_LT(sparse.MemoryBytes(), plain.MemoryBytes());
  EXPECT_LT(sampled.MemoryBytes(), sparse.MemoryBytes());
}

}  // namespace
}  // namespace quire
