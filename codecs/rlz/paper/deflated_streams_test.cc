// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/paper/deflated_streams.h"

#include <initializer_list>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/varint.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"
#include "testing/codecs/deflate_check.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

TEST(DeflatedStreamTest, DecodesAsFarAsIsWanted) {
  TestRandom random(81);
  const std::string text = RandomText(random, 50000);
  const std::string stored = RawDeflate(text);
  DeflatedStream stream("test");
  // The second round reuses the memory.
  for (int round = 0; round < 2; ++round) {
    stream.Start(AsBytes(stored), text.size());
    EXPECT_EQ(stream.size_max(), text.size());
    EXPECT_TRUE(stream.bytes().empty());
    for (const size_t wanted :
         std::initializer_list<size_t>{1, 1000, 1000, 30000, 50000}) {
      QUIRE_ASSERT_OK(stream.DecodeTo(wanted));
      const size_t size = stream.bytes().size();
      EXPECT_GE(size, wanted);
      EXPECT_LE(size, text.size());
      EXPECT_TRUE(AsText(stream.bytes()) == text.substr(0, size));
      EXPECT_EQ(stream.bytes_and_more().size(), size + 32);
    }
    QUIRE_EXPECT_OK(stream.Finish());
  }
}

TEST(DeflatedStreamTest, EndsWhereTheStreamDoes) {
  DeflatedStream stream("test");
  const std::string stored = RawDeflate("some words");
  stream.Start(AsBytes(stored), 100);
  QUIRE_ASSERT_OK(stream.DecodeTo(100));
  EXPECT_EQ(AsText(stream.bytes()), "some words");
  QUIRE_EXPECT_OK(stream.Finish());
}

TEST(DeflatedStreamTest, NamesTheStreamInWhatIsWrong) {
  const std::string stored = RawDeflate("0123456789");
  DeflatedStream stream("offset");
  const auto expect = [](const absl::Status& status, const char* message) {
    EXPECT_THAT(status,
                FailsWith(absl::StatusCode::kDataLoss, HasSubstr(message)));
  };
  stream.Start(AsBytes("\x07"), 10);
  expect(stream.DecodeTo(10), "offset stream: malformed");
  stream.Start(AsBytes(stored), 9);
  QUIRE_ASSERT_OK(stream.DecodeTo(9));
  EXPECT_EQ(stream.bytes().size(), 9u);
  expect(stream.Finish(), "offset stream: the DEFLATE stream holds more");
  const std::string longer = stored + "x";
  stream.Start(AsBytes(longer), 10);
  QUIRE_ASSERT_OK(stream.DecodeTo(10));
  expect(stream.Finish(), "offset stream: 1 bytes follow");
}

class FindTokensTest : public ::testing::Test {
 protected:
  // Tokens of 1 to 299 bytes of text, in one byte or two.
  void SetUp() override {
    for (uint32_t i = 0; i < 3000; ++i) {
      places_.push_back(
          {.token_bytes = bytes_.size(), .offsets = i, .text_size = size_});
      const size_t length = 1 + RandomBelow(random_, i % 9 == 0 ? 299 : 20);
      AppendVarint(length, bytes_);
      size_ += length;
    }
    places_.push_back({.token_bytes = bytes_.size(),
                       .offsets = places_.size(),
                       .text_size = size_});
  }

  absl::StatusOr<TokenRange> Find(const std::string& stored, size_t begin,
                                  size_t end, size_t raw_size) {
    tokens_.Start(AsBytes(stored), bytes_.size());
    return FindTokens(TokenKind::kFactors, begin, end, raw_size, tokens_);
  }

  // The last position at or before a byte of the text.
  const TokenPlace& PlaceOf(size_t text_position) const {
    size_t i = places_.size() - 1;
    while (places_[i].text_size > text_position) {
      --i;
    }
    return places_[i];
  }

  TestRandom random_{82};
  std::string bytes_;
  size_t size_ = 0;
  std::vector<TokenPlace> places_;
  DeflatedStream tokens_{"token"};
};

TEST_F(FindTokensTest, FindsThePlacesOfARange) {
  const std::string stored = RawDeflate(bytes_);
  for (int i = 0; i < 500; ++i) {
    const size_t begin = i == 0 ? 0 : RandomBelow(random_, size_ + 1);
    const size_t end =
        i % 10 == 0 ? size_ : begin + RandomBelow(random_, size_ - begin + 1);
    QUIRE_ASSERT_OK_AND_ASSIGN(const TokenRange range,
                               Find(stored, begin, end, size_));
    for (const auto& [found, expected] :
         {std::pair{range.begin, PlaceOf(begin)},
          std::pair{range.end, PlaceOf(end)}}) {
      ASSERT_EQ(found.token_bytes, expected.token_bytes);
      ASSERT_EQ(found.offsets, expected.offsets);
      ASSERT_EQ(found.text_size, expected.text_size);
    }
  }
}

TEST_F(FindTokensTest, NeedsNoMoreOfTheStreamThanTheRange) {
  std::string stored = RawDeflate(bytes_);
  stored.resize(stored.size() / 2);
  EXPECT_THAT(Find(stored, 10, 2000, size_), IsOk());
  EXPECT_THAT(
      Find(stored, 10, size_, size_),
      FailsWith(absl::StatusCode::kDataLoss, HasSubstr("token stream")));
}

TEST_F(FindTokensTest, WantsAllTokensToBeAllOfTheText) {
  const auto expect = [&](const std::string& stored, size_t raw_size,
                          const char* message) {
    EXPECT_THAT(Find(stored, 0, raw_size, raw_size),
                FailsWith(absl::StatusCode::kDataLoss, HasSubstr(message)));
  };
  const std::string stored = RawDeflate(bytes_);
  EXPECT_THAT(Find(stored, 0, size_, size_), IsOk());
  expect(stored, size_ + 1, "bytes of text where");
  expect(stored, places_[2999].text_size, "more factors follow");
  expect(RawDeflate(bytes_.substr(0, bytes_.size() - 1) + "\x7F"), size_,
         "past the block's");
  expect(stored + "x", size_, "token stream: 1 bytes follow");
}

}  // namespace
}  // namespace quire
