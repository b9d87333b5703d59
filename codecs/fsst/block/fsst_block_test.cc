// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/block/fsst_block.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/bytes.h"
#include "codecs/fsst/decode/fsst_decoder.h"
#include "codecs/fsst/encode/fsst_encoder.h"
#include "codecs/fsst/table/symbol_table.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"
#include "testing/codecs/fsst_test_vectors.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

constexpr size_t kStringSize = kFsstStringSizeMax;
// 64 strings and more than one group.
constexpr size_t kGroupTextSize = 64 * kStringSize;

SymbolTable TestTable() {
  std::vector<std::string> symbols = {std::string(8, '\0'), "</p>\n<p "};
  for (char c = 'a'; c <= 'z'; ++c) {
    symbols.insert(symbols.end(),
                   {std::string(1, c), std::string{c, 'e'}, std::string{c, ' '},
                    std::string{'t', 'h', c}});
  }
  return MakeSymbolTable(symbols);
}

class FsstBlockTest : public ::testing::Test {
 protected:
  // Returns a buffer of exactly the block's size, so that AddressSanitizer
  // reports reads past it.
  std::vector<uint8_t> Encode(const std::string& text) const {
    std::vector<uint8_t> block(FsstBlockSizeMax(text.size()));
    const size_t size = EncodeFsstBlock(encoder_, AsBytes(text), block);
    EXPECT_LE(size, block.size());
    return {block.begin(), block.begin() + static_cast<ptrdiff_t>(size)};
  }

  absl::StatusOr<std::string> Decode(const FsstBlockView& view, size_t offset,
                                     size_t size) const {
    const auto out = std::make_unique<uint8_t[]>(size);
    const absl::Status status =
        view.DecodeRange(decoder_, offset, {out.get(), size});
    if (!status.ok()) {
      return status;
    }
    return std::string(AsText({out.get(), size}));
  }

  // Checks both ways of reading a range.
  void ExpectRange(const FsstBlockView& view, const std::string& text,
                   size_t offset, size_t size) const {
    SCOPED_TRACE(absl::StrCat("[", offset, ", + ", size, ")"));
    const std::string expected = text.substr(offset, size);
    EXPECT_TRUE(Decode(view, offset, size).value_or("wrong") == expected);
    QUIRE_ASSERT_OK_AND_ASSIGN(const FsstBlockView::CodeRange found,
                               view.Find(decoder_, offset, size));
    const size_t front = found.front_cut_size_bytes;
    const size_t back = found.back_cut_size_bytes;
    EXPECT_LT(front, 8u);
    EXPECT_LT(back, 8u);
    std::vector<uint8_t> out(front + size + back);
    QUIRE_ASSERT_OK(decoder_.DecodeExactly(found.codes, out));
    EXPECT_TRUE(AsText(ByteView(out).subspan(front, size)) == expected);
  }

  const SymbolTable table_ = TestTable();
  const FsstEncoder encoder_{table_};
  const FsstDecoder decoder_{table_};
};

TEST_F(FsstBlockTest, FindsAndDecodesEveryRangeOfSmallBlocks) {
  TestRandom random(1);
  for (const TestInput& input :
       TestInputs(random, 70, RandomText(random, 99))) {
    const std::vector<uint8_t> block = Encode(input.text);
    QUIRE_ASSERT_OK_AND_ASSIGN(const FsstBlockView view,
                               FsstBlockView::Parse(block, 70));
    for (size_t offset = 0; offset <= 70; ++offset) {
      for (size_t size = 0; size <= 70 - offset; ++size) {
        ExpectRange(view, input.text, offset, size);
      }
    }
  }
}

TEST_F(FsstBlockTest, FindsRangesAroundTheEdgesOfStringsAndGroups) {
  TestRandom random(2);
  for (const size_t size :
       {kStringSize, 2 * kStringSize + 1, kGroupTextSize - 1, kGroupTextSize,
        kGroupTextSize + 1, 3 * kGroupTextSize + 7 * kStringSize + 100}) {
    for (const TestInput& input :
         TestInputs(random, size, RandomText(random, 3000))) {
      SCOPED_TRACE(absl::StrCat(input.name, ", ", size, " bytes"));
      const std::vector<uint8_t> block = Encode(input.text);
      QUIRE_ASSERT_OK_AND_ASSIGN(const FsstBlockView view,
                                 FsstBlockView::Parse(block, size));
      EXPECT_EQ(view.text_size(), size);
      ExpectRange(view, input.text, 0, size);
      std::vector<size_t> places = {0, size};
      for (int i = 0; i < 30; ++i) {
        const size_t edge = RandomBelow(random, size / kStringSize + 1) *
                            (i % 3 == 0 ? kGroupTextSize : kStringSize);
        places.push_back(std::min(size, edge + RandomBelow(random, 3)));
        places.push_back(RandomBelow(random, size));
      }
      for (int i = 0; i < 40; ++i) {
        const size_t a = places[RandomBelow(random, places.size())];
        const size_t b = places[RandomBelow(random, places.size())];
        ExpectRange(view, input.text, std::min(a, b),
                    std::max(a, b) - std::min(a, b));
      }
    }
  }
}

TEST_F(FsstBlockTest, HoldsTheCodesOfTheTextAndFewMarks) {
  TestRandom random(3);
  for (const size_t size : {size_t{1}, kStringSize, size_t{1} << 20}) {
    const std::string text = RandomText(random, size);
    const std::vector<uint8_t> block = Encode(text);
    std::vector<uint8_t> codes(FsstEncoder::CodesSizeMax(size));
    codes.resize(encoder_.Encode(AsBytes(text), codes));
    EXPECT_LE(block.size(), codes.size() + size * 42 / 10000);
    QUIRE_ASSERT_OK_AND_ASSIGN(const FsstBlockView view,
                               FsstBlockView::Parse(block, size));
    EXPECT_TRUE(std::ranges::equal(view.codes(), codes));
  }
}

TEST_F(FsstBlockTest, OfNoTextIsEmpty) {
  EXPECT_TRUE(Encode("").empty());
  QUIRE_ASSERT_OK_AND_ASSIGN(const FsstBlockView view,
                             FsstBlockView::Parse({}, 0));
  ExpectRange(view, "", 0, 0);
  const std::vector<uint8_t> one_byte(1);
  EXPECT_THAT(FsstBlockView::Parse(one_byte, 0),
              HasCode(absl::StatusCode::kDataLoss));
}

TEST_F(FsstBlockTest, HasTheFormThatIsWritten) {
  // Two groups: 64 strings of 511 letters, each a code, and one of two letters
  // without a symbol.
  const std::string text = std::string(kGroupTextSize, 'q') + "QQ";
  const std::vector<uint8_t> block = Encode(text);
  ASSERT_EQ(block.size(), 4 + 63 * 2 + kGroupTextSize + 4);
  EXPECT_EQ(block[0] + 256 * block[1] + 65536 * block[2],
            static_cast<int>(kGroupTextSize));
  EXPECT_EQ(block[3], 0);
  for (size_t i = 1; i < 64; ++i) {
    const size_t mark = 4 + (i - 1) * 2;
    EXPECT_EQ(block[mark] + 256u * block[mark + 1], i * kStringSize);
  }
  EXPECT_EQ(block[block.size() - 4], kFsstEscape);
  EXPECT_EQ(block.back(), 'Q');
}

TEST_F(FsstBlockTest, RefusesMarksThatCannotBe) {
  const size_t size = 2 * kGroupTextSize + 1000;
  TestRandom random(4);
  std::vector<uint8_t> block = Encode(RandomText(random, size));
  const size_t marks_size = 2 * 4 + 127 * 2;
  QUIRE_EXPECT_OK(FsstBlockView::Parse(block, size));
  // A mark out of order, two equal marks, one too large, at every index.
  for (size_t at = 0; at < marks_size; at += at < 8 ? 4 : 2) {
    const std::vector<uint8_t> good = block;
    for (const uint8_t high : {uint8_t{0}, uint8_t{0xFF}}) {
      block[at] = high;
      block[at + 1] = high;
      EXPECT_THAT(FsstBlockView::Parse(block, size),
                  FailsWith(absl::StatusCode::kDataLoss, HasSubstr("marks")))
          << at;
    }
    block = good;
  }
  for (const size_t wrong :
       {size_t{0}, size_t{1}, kStringSize, size / 2, size - kStringSize,
        size - 1, size + 1, size + kStringSize, 9 * size,
        kFsstBlockTextSizeMax + 1, ~size_t{0}}) {
    // Marks cannot tell a text from a slightly longer one; codes can.
    const auto view = FsstBlockView::Parse(block, wrong);
    EXPECT_THAT(view.ok() ? Decode(*view, 0, wrong).status() : view.status(),
                HasCode(absl::StatusCode::kDataLoss))
        << wrong;
  }
  for (size_t cut = 0; cut < marks_size + 300; ++cut) {
    const std::vector<uint8_t> front(
        block.begin(), block.begin() + static_cast<ptrdiff_t>(cut));
    EXPECT_THAT(FsstBlockView::Parse(front, size),
                HasCode(absl::StatusCode::kDataLoss))
        << cut;
  }
}

TEST_F(FsstBlockTest, DecodingTheWholeChecksEachString) {
  const size_t size = 3 * kStringSize;
  std::vector<uint8_t> block = Encode(std::string(size, 'q'));
  // The second string begins one code later: its neighbours are wrong, though
  // the codes as a run are not.
  ++block[0];
  QUIRE_ASSERT_OK_AND_ASSIGN(const FsstBlockView view,
                             FsstBlockView::Parse(block, size));
  EXPECT_THAT(Decode(view, 0, size),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("string 0")));
}

TEST_F(FsstBlockTest, RefusesBadCodes) {
  const size_t size = 3 * kStringSize;
  const std::vector<uint8_t> good = Encode(std::string(size, 'q'));
  const size_t codes = 4;
  const auto expect_refused = [&](const std::vector<uint8_t>& block) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const FsstBlockView view,
                               FsstBlockView::Parse(block, size));
    EXPECT_THAT(Decode(view, 0, size), HasCode(absl::StatusCode::kDataLoss));
    EXPECT_THAT(Decode(view, kStringSize + 9, 300),
                HasCode(absl::StatusCode::kDataLoss));
    EXPECT_THAT(view.Find(decoder_, kStringSize + 9, 300),
                HasCode(absl::StatusCode::kDataLoss));
    // Other strings stay readable.
    EXPECT_EQ(Decode(view, 9, 20).value_or(""), std::string(20, 'q'));
  };
  // No such code in the second string.
  std::vector<uint8_t> block = good;
  block[codes + kStringSize + 100] = 254;
  expect_refused(block);
  // The second string decodes to less than it should: 256 bytes.
  block = good;
  std::fill_n(block.begin() + codes + kStringSize, kStringSize, kFsstEscape);
  block[codes + 2 * kStringSize - 1] = good.back();
  expect_refused(block);
}

TEST_F(FsstBlockTest, FindsNothingBehindStringsThatEndTooEarly) {
  const uint8_t code_of_q = Encode("q")[0];
  // The last byte of a string of three, or an escape instead of it.
  for (const uint8_t end : {code_of_q, kFsstEscape}) {
    const std::vector<uint8_t> block = {kFsstEscape, 'a', code_of_q, end};
    QUIRE_ASSERT_OK_AND_ASSIGN(const FsstBlockView view,
                               FsstBlockView::Parse(block, 4));
    EXPECT_THAT(view.Find(decoder_, 0, 4),
                HasCode(absl::StatusCode::kDataLoss));
    EXPECT_THAT(view.Find(decoder_, 3, 1),
                HasCode(absl::StatusCode::kDataLoss));
    QUIRE_EXPECT_OK(view.Find(decoder_, 0, 2));
  }
}

}  // namespace
}  // namespace quire
