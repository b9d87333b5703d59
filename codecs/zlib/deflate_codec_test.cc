// SPDX-License-Identifier: Apache-2.0
#include "codecs/zlib/deflate_codec.h"

#include <initializer_list>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"
#include "testing/codecs/deflate_check.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

constexpr size_t kSize = 100000;

class DeflateRangeTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::string> Decode(const std::string& stored, size_t raw_size,
                                     size_t offset, size_t size) {
    std::string out(size, '?');
    const absl::Status status =
        DecodeDeflateRange(AsBytes(stored), AsBytes(dictionary_), raw_size,
                           offset, AsMutableBytes(out), decoder_, scratch_);
    if (!status.ok()) {
      return status;
    }
    return out;
  }

  TestRandom random_{41};
  const std::string dictionary_ = RandomText(random_, 20000);
  const std::string text_ = EditedPieces(random_, dictionary_, kSize);
  const std::string stored_ = RawDeflate(text_, dictionary_);
  DeflateDecoder decoder_;
  BlockCodec::Scratch scratch_;
};

TEST_F(DeflateRangeTest, IsTheCutOfTheWhole) {
  EXPECT_TRUE(Decode(stored_, kSize, 0, kSize).value_or("") == text_);
  for (int i = 0; i < 200; ++i) {
    const size_t offset = i % 5 == 0 ? 0 : RandomBelow(random_, kSize + 1);
    const size_t size =
        i % 7 == 0 ? kSize - offset : RandomBelow(random_, kSize - offset + 1);
    const auto range = Decode(stored_, kSize, offset, size);
    ASSERT_THAT(range, IsOk()) << offset << " " << size;
    EXPECT_TRUE(*range == text_.substr(offset, size)) << offset << " " << size;
  }
}

TEST_F(DeflateRangeTest, StopsAtItsEnd) {
  const std::string cut = stored_.substr(0, stored_.size() / 2);
  for (const size_t offset : std::initializer_list<size_t>{0, 1, 20000}) {
    EXPECT_TRUE(Decode(cut, kSize, offset, 1000).value_or("") ==
                text_.substr(offset, 1000));
  }
  EXPECT_THAT(Decode(cut, kSize, kSize - 1000, 999),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("cut short")));
}

TEST_F(DeflateRangeTest, ThatReachesTheEndWantsTheStreamToEndThere) {
  for (const size_t offset : std::initializer_list<size_t>{0, 5, kSize - 5}) {
    const auto expect = [&](const std::string& stored, size_t raw_size,
                            const char* message) {
      EXPECT_THAT(Decode(stored, raw_size, offset, raw_size - offset),
                  FailsWith(absl::StatusCode::kDataLoss, HasSubstr(message)))
          << offset;
    };
    expect(stored_ + "x", kSize, "1 bytes follow");
    expect(stored_.substr(0, stored_.size() - 1), kSize, "cut short");
    expect(stored_, kSize - 1, "more than expected");
    expect(stored_, kSize + 1, "decodes to 100000 bytes where 100001");
    expect("", kSize, "cut short");
    expect("\x07", kSize, "malformed");
  }
}

TEST_F(DeflateRangeTest, MayBeEmpty) {
  for (const size_t offset : std::initializer_list<size_t>{0, 7, kSize}) {
    EXPECT_EQ(Decode(stored_, kSize, offset, 0).value_or("?"), "");
  }
  EXPECT_EQ(Decode(RawDeflate(""), 0, 0, 0).value_or("?"), "");
}

}  // namespace
}  // namespace quire
