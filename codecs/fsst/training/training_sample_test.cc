// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/training/training_sample.h"

#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

std::vector<std::string> Pieces(const std::vector<std::string>& texts,
                                size_t size_max, bool zero_terminated = false) {
  const std::vector<ByteView> views = [&] {
    std::vector<ByteView> all;
    for (const std::string& text : texts) {
      all.push_back(AsBytes(text));
    }
    return all;
  }();
  const TrainingSample sample(views, size_max, zero_terminated);
  std::vector<std::string> pieces;
  size_t size = 0;
  for (size_t i = 0; i < sample.piece_count(); ++i) {
    EXPECT_FALSE(sample.piece(i).empty());
    EXPECT_LE(sample.piece(i).size(), TrainingSample::kPieceSizeBytesMax);
    pieces.emplace_back(AsText(sample.piece(i)));
    size += sample.piece(i).size();
  }
  EXPECT_EQ(sample.size_bytes(), size);
  EXPECT_LE(size, size_max);
  return pieces;
}

TEST(TrainingSampleTest, TakesAllOfWhatFits) {
  EXPECT_EQ(Pieces({"ab", "", "c"}, 3), (std::vector<std::string>{"ab", "c"}));
  EXPECT_TRUE(Pieces({}, 100).empty());
  EXPECT_TRUE(Pieces({"", ""}, 100).empty());
  EXPECT_TRUE(Pieces({"abc"}, 0).empty());
}

TEST(TrainingSampleTest, EndsPiecesWhereTheEncoderCuts) {
  const std::string text(1200, 'a');
  const auto pieces = Pieces({text}, 2000);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].size(), 511u);
  EXPECT_EQ(pieces[1].size(), 511u);
  EXPECT_EQ(pieces[2].size(), 178u);
}

TEST(TrainingSampleTest, LeavesTerminatorsOut) {
  const std::string text("ab\0\0c\0d", 7);
  EXPECT_EQ(Pieces({text, std::string("\0", 1)}, 100, true),
            (std::vector<std::string>{"ab", "c", "d"}));
  const std::string full = std::string(511, 'a') + '\0' + "b";
  EXPECT_EQ(Pieces({full}, 1000, true),
            (std::vector<std::string>{std::string(511, 'a'), "b"}));
}

TEST(TrainingSampleTest, SpreadsPiecesOverOneText) {
  std::string text;
  while (text.size() < 1000000) {
    absl::StrAppend(&text, text.size(), ",");
  }
  const size_t count = 16;
  const auto pieces = Pieces({text}, count * TrainingSample::kPieceSizeBytes);
  ASSERT_EQ(pieces.size(), count);
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(pieces[i], text.substr(text.size() * i / count,
                                     TrainingSample::kPieceSizeBytes));
  }
}

TEST(TrainingSampleTest, TakesShortTextsFromTheirFirstByteAndOnce) {
  std::vector<std::string> texts;
  for (int i = 0; i < 100000; ++i) {
    texts.push_back(absl::StrCat("<", i, ">"));
  }
  const auto pieces = Pieces(texts, 8 << 10);
  size_t size = 0;
  std::vector<size_t> tenths(10);
  std::set<std::string> whole;
  for (const std::string& piece : pieces) {
    EXPECT_EQ(piece[0], '<');
    size += piece.size();
    // The last text of a piece may be cut.
    if (piece.back() == '>') {
      EXPECT_TRUE(whole.insert(piece).second) << piece;
      ++tenths[static_cast<size_t>(std::stoi(piece.substr(1))) / 10000];
    }
  }
  EXPECT_GT(size, (8 << 10) * 9 / 10);
  for (const size_t tenth : tenths) {
    EXPECT_GT(tenth, pieces.size() / 20);
  }
}

// For any mix of sizes: within the limit, near it if there is enough text, in
// order, nothing twice.
TEST(TrainingSampleTest, TakesPiecesInOrderWhateverTheTexts) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    std::vector<std::string> texts;
    std::string all;
    for (size_t i = 0, count = RandomBelow(random, 500); i < count; ++i) {
      const size_t bound = std::initializer_list<size_t>{1, 10, 300, 5000}
                               .begin()[RandomBelow(random, 4)];
      texts.push_back(RandomBytes(random, RandomBelow(random, bound + 1)));
      all += texts.back();
    }
    const size_t size_max = RandomBelow(random, all.size() + 1000);
    size_t size = 0;
    size_t at = 0;
    for (const std::string& piece : Pieces(texts, size_max)) {
      // Pieces of one or two random bytes may be found too early, never late.
      at = all.find(piece, at);
      ASSERT_NE(at, std::string::npos);
      at += piece.size();
      size += piece.size();
    }
    if (size_max >= all.size()) {
      EXPECT_EQ(size, all.size());
    } else {
      EXPECT_GE(size + size_max / 4 + TrainingSample::kPieceSizeBytes,
                size_max);
    }
  }
}

}  // namespace
}  // namespace quire
