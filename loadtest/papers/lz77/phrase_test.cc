// SPDX-License-Identifier: GPL-3.0-or-later
#include "loadtest/papers/lz77/phrase.h"

#include "loadtest/papers/lz77/lz77_test_blocks.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

std::string TextOf(const PhraseBlock& block, size_t size) {
  std::string text(size, '\0');
  DecodePhrases(block, AsMutableBytes(text));
  return text;
}

TEST(PhraseTest, WalksOverWhatLz4Wrote) {
  TestRandom random(1);
  for (const size_t size :
       {size_t{1}, size_t{13}, size_t{5000}, size_t{300000}}) {
    for (const TestInput& input :
         TestInputs(random, size, RandomText(random, 4096))) {
      const std::vector<uint8_t> stored = Lz4Block(input.text);
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const PhraseBlock block,
          PhraseBlock::Check(stored, size, kLz4MatchSizeMin));
      EXPECT_EQ(TextOf(block, size), input.text) << input.name;
      EXPECT_EQ(TextOf(block, size / 2), input.text.substr(0, size / 2));
    }
  }
}

TEST(PhraseTest, HoldsZlibsParse) {
  TestRandom random(2);
  for (const int level : {1, 6, 9}) {
    for (const TestInput& input :
         TestInputs(random, 100'000, RandomText(random, 4096))) {
      const std::vector<uint8_t> stored = DeflateParse(input.text, level);
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const PhraseBlock block,
          PhraseBlock::Check(stored, input.text.size(), kDeflateMatchSizeMin));
      EXPECT_EQ(TextOf(block, input.text.size()), input.text) << input.name;
    }
  }
}

TEST(PhraseTest, PlacesAreThoseOfThePhrases) {
  // "abc", a match of 4 at distance 3, and "x" at the end.
  const std::vector<uint8_t> stored = {0x30, 'a', 'b', 'c', 3, 0, 0x10, 'x'};
  QUIRE_ASSERT_OK_AND_ASSIGN(const PhraseBlock block,
                             PhraseBlock::Check(stored, 8, kLz4MatchSizeMin));
  EXPECT_EQ(TextOf(block, 8), "abcabcax");
  EXPECT_THAT(block.Places(),
              ::testing::ElementsAre(PhrasePlace{0, 0}, PhrasePlace{7, 6}));
}

TEST(PhraseTest, AnEmptyTextIsOnePhrase) {
  const std::vector<uint8_t> stored = {0};
  QUIRE_ASSERT_OK_AND_ASSIGN(const PhraseBlock block,
                             PhraseBlock::Check(stored, 0, kLz4MatchSizeMin));
  EXPECT_THAT(block.Places(), ::testing::ElementsAre(PhrasePlace{0, 0}));
}

struct BadBlock {
  std::vector<uint8_t> stored;
  size_t text_size;
  std::string says;
};

TEST(PhraseTest, RefusesWhatIsNoBlock) {
  const std::vector<BadBlock> bad = {
      {{}, 0, "missing"},
      {{0x10}, 1, "literals beyond the end of the block"},
      {{0xF0}, 15, "the number of literals"},
      {{0xF0, 255, 255}, 600, "the number of literals"},
      {{0x10, 'a'}, 0, "literals beyond the end of the text"},
      {{0x11, 'a'}, 1, "the last one has a match"},
      {{0x10, 'a', 1}, 5, "cut short"},
      {{0x10, 'a', 0, 0, 0}, 5, "distance 0"},
      {{0x10, 'a', 2, 0, 0}, 5, "distance 2 at byte 1"},
      {{0x1F, 'a', 1, 0}, 100, "the size of its match"},
      {{0x1F, 'a', 1, 0, 255, 255}, 100, "the size of its match"},
      {{0x10, 'a', 1, 0, 0}, 4, "beyond the end of the text"},
      {{0x10, 'a', 1, 0}, 5, "missing"},
      {{0x10, 'a'}, 2, "make 1 bytes of text rather than 2"},
  };
  for (const BadBlock& block : bad) {
    EXPECT_THAT(
        PhraseBlock::Check(block.stored, block.text_size, kLz4MatchSizeMin),
        FailsWith(absl::StatusCode::kDataLoss, HasSubstr(block.says)));
  }
  EXPECT_THAT(PhraseBlock::Check({}, kPhraseTextSizeMax + 1, kLz4MatchSizeMin),
              HasCode(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace quire
