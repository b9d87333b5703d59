// SPDX-License-Identifier: GPL-3.0-or-later
#include "loadtest/papers/lz77/recursive_extractor.h"

#include <algorithm>

#include "loadtest/papers/lz77/lz77_test_blocks.h"
#include "loadtest/papers/lz77/phrase_index.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

// All indexes over one block, checked against its text.
class Extraction {
 public:
  Extraction(const std::string& text, const std::vector<uint8_t>& stored,
             uint32_t match_size_min)
      : text_(text),
        block_(*PhraseBlock::Check(stored, text.size(), match_size_min)),
        places_(block_.Places()),
        plain_(places_, text.size(), stored.size()),
        sparse_(places_, text.size(), stored.size()),
        sampled_(places_, text.size(), stored.size()),
        grid_(places_, text.size(), stored.size()) {}

  void ExpectSlice(size_t offset, size_t size) {
    SCOPED_TRACE(absl::StrCat(offset, " + ", size));
    ExpectSliceBy(plain_, offset, size);
    ExpectSliceBy(sparse_, offset, size);
    ExpectSliceBy(sampled_, offset, size);
    ExpectSliceBy(grid_, offset, size);
  }

  bool ExtractWithin(uint32_t steps, size_t offset, size_t size) {
    std::string out(size, '\0');
    return extractor_.Extract(block_, grid_, static_cast<uint32_t>(offset),
                              AsMutableBytes(out), steps);
  }

  const RecursiveExtractor& extractor() const { return extractor_; }

 private:
  template <class Index>
  void ExpectSliceBy(const Index& index, size_t offset, size_t size) {
    // Exactly as long as it must be, for AddressSanitizer.
    std::vector<uint8_t> out(size);
    ASSERT_TRUE(
        extractor_.Extract(block_, index, static_cast<uint32_t>(offset), out));
    ASSERT_EQ(AsText(out), absl::string_view(text_).substr(offset, size));
  }

  const std::string& text_;
  PhraseBlock block_;
  std::vector<PhrasePlace> places_;
  PlainPhraseIndex plain_;
  SparsePhraseIndex sparse_;
  SampledPhraseIndex sampled_;
  GridPhraseIndex grid_;
  RecursiveExtractor extractor_;
};

void ExpectAnySlice(TestRandom& random, Extraction& extraction,
                    size_t text_size) {
  for (int i = 0; i < 200; ++i) {
    const size_t offset = RandomBelow(random, text_size);
    const size_t size_max =
        std::min(text_size - offset, size_t{1} << RandomBelow(random, 14));
    extraction.ExpectSlice(offset, RandomBelow(random, size_max + 1));
  }
  extraction.ExpectSlice(0, text_size);
  extraction.ExpectSlice(text_size, 0);
  extraction.ExpectSlice(text_size - 1, 1);
}

TEST(RecursiveExtractorTest, EqualsTheSliceOfLz4Blocks) {
  TestRandom random(6);
  for (const TestInput& input :
       TestInputs(random, 60'000, RandomText(random, 4096))) {
    SCOPED_TRACE(input.name);
    const std::vector<uint8_t> stored = Lz4Block(input.text);
    Extraction extraction(input.text, stored, kLz4MatchSizeMin);
    ExpectAnySlice(random, extraction, input.text.size());
  }
}

TEST(RecursiveExtractorTest, EqualsTheSliceOfDeflateParses) {
  TestRandom random(7);
  for (const TestInput& input :
       TestInputs(random, 60'000, RandomText(random, 4096))) {
    SCOPED_TRACE(input.name);
    const std::vector<uint8_t> stored = DeflateParse(input.text);
    Extraction extraction(input.text, stored, kDeflateMatchSizeMin);
    ExpectAnySlice(random, extraction, input.text.size());
  }
}

TEST(RecursiveExtractorTest, ExpandsMatchesThatOverlapThemselves) {
  for (const uint32_t period : {1u, 2u, 3u, 7u, 16u, 17u, 40u}) {
    SCOPED_TRACE(period);
    std::string text;
    for (uint32_t i = 0; i < period; ++i) {
      text.push_back(static_cast<char>('a' + i));
    }
    const uint32_t size = 1000;
    const std::vector<TextMatch> matches = {{period, size, period}};
    for (uint32_t i = 0; i < size; ++i) {
      text.push_back(text[i]);
    }
    text += "end";
    const std::vector<uint8_t> stored = StorePhrases(AsBytes(text), matches);
    Extraction extraction(text, stored, kDeflateMatchSizeMin);
    for (size_t offset = 0; offset < 2 * period + 3; ++offset) {
      for (size_t length = 0; length < 3 * period + 5; ++length) {
        extraction.ExpectSlice(offset, length);
      }
      extraction.ExpectSlice(offset, text.size() - offset);
    }
  }
}

// A chain of thousands of copies fits the stack, or is reported.
TEST(RecursiveExtractorTest, FollowsChainsThatNeverCutAPhrase) {
  std::string text;
  const std::vector<uint8_t> stored = ChainBlock(5000, 20, text);
  Extraction extraction(text, stored, kDeflateMatchSizeMin);
  for (const size_t size : {1u, 5u, 20u}) {
    extraction.ExpectSlice(text.size() - 20, size);
  }
}

TEST(RecursiveExtractorTest, GivesUpAfterItsBudget) {
  std::string text;
  const std::vector<uint8_t> stored = ChainBlock(5000, 20, text);
  Extraction extraction(text, stored, kDeflateMatchSizeMin);
  EXPECT_FALSE(extraction.ExtractWithin(100, text.size() - 20, 20));
  EXPECT_EQ(extraction.extractor().steps(), 101u);
  EXPECT_TRUE(extraction.ExtractWithin(10'000, text.size() - 20, 20));
  EXPECT_GT(extraction.extractor().steps(), 1000u);
}

// Matches that straddle the phrases of their sources, each once more than the
// last: without memoisation the work grows with each.
TEST(RecursiveExtractorTest, RemembersWhatItExtracted) {
  std::string text = "abcdefghijklmnopqrst";
  std::vector<TextMatch> matches;
  for (uint32_t i = 0; i < 400; ++i) {
    const auto offset = static_cast<uint32_t>(text.size());
    matches.push_back({offset, 15, 20});
    text += text.substr(offset - 20, 15);
    text += static_cast<char>('A' + i % 26);
    const auto after = static_cast<uint32_t>(text.size());
    matches.push_back({after, 4, 16});
    text += text.substr(after - 16, 4);
  }
  const std::vector<uint8_t> stored = StorePhrases(AsBytes(text), matches);
  Extraction extraction(text, stored, kDeflateMatchSizeMin);
  const size_t size = 1000;
  EXPECT_TRUE(extraction.ExtractWithin(RecursiveExtractor::kNoBudget,
                                       text.size() - size, size));
  EXPECT_LT(extraction.extractor().steps(), 10 * size);
}

}  // namespace
}  // namespace quire
