// SPDX-License-Identifier: Apache-2.0
//
// Tests specific to rlz-uv and rlz-pv; block_codec_test.cc covers all codecs.
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/rlz/paper/factor_form.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"
#include "testing/codecs/paper_form_testing.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

// Forty different bytes.
std::string SmallDictionary() {
  std::string dictionary;
  for (int i = 0; i < 40; ++i) {
    dictionary.push_back(static_cast<char>('0' + i));
  }
  return dictionary;
}

TEST(FixedFormTest, WritesAndReadsTheDocumentedForm) {
  const std::string dictionary = SmallDictionary();
  const std::string text = dictionary + "\xFE" + dictionary.substr(7, 20);
  CodecUnderTest uv(CodecId::kRlzUv, dictionary);
  const std::string stored(
      "\x03"
      "\0\0\0\0\xFE\0\0\0\x07\0\0\0"
      "\x28\0\x14",
      16);
  EXPECT_EQ(uv.Encode(text), stored);
  EXPECT_EQ(uv.Decode(stored, text.size()).value_or(""), text);
  // Six bits suffice for 40 positions, but not for a literal.
  CodecUnderTest pv(CodecId::kRlzPv, dictionary);
  const std::string packed("\x03\0\xFE\x07\x28\0\x14", 7);
  EXPECT_EQ(pv.Encode(text), packed);
  EXPECT_EQ(pv.Decode(packed, text.size()).value_or(""), text);
}

TEST(FixedFormTest, PacksOffsetsFromTheLowestBitOn) {
  // 300 positions take 9 bits.
  TestRandom random(1);
  const std::string dictionary = RandomBytes(random, 300);
  const std::string text =
      dictionary.substr(257, 30) + dictionary.substr(1, 99);
  CodecUnderTest pv(CodecId::kRlzPv, dictionary);
  const std::string packed("\x02\x01\x03\0\x1E\x63", 6);
  EXPECT_EQ(pv.Encode(text), packed);
  EXPECT_EQ(pv.Decode(packed, text.size()).value_or(""), text);
}

TEST(FixedFormTest, PackedOffsetsAreAsWideAsTheDictionaryNeeds) {
  EXPECT_EQ(PackedOffsetBits(0), 8u);
  EXPECT_EQ(PackedOffsetBits(256), 8u);
  EXPECT_EQ(PackedOffsetBits(257), 9u);
  EXPECT_EQ(PackedOffsetBits(16 << 20), 24u);
  EXPECT_EQ(PackedOffsetBits((16 << 20) + 1), 25u);
  EXPECT_EQ(PackedOffsetBits(0x7FFFFFFF), 31u);
}

TEST(FixedFormTest, NamesWhatIsWrongWithABlock) {
  CodecUnderTest uv(CodecId::kRlzUv, "0123456789");
  const auto expect = [&](const std::string& stored, const char* message) {
    EXPECT_THAT(uv.Decode(stored, 20),
                FailsWith(absl::StatusCode::kDataLoss, HasSubstr(message)));
  };
  const std::string zeros(8, '\0');
  EXPECT_THAT(uv.Decode("\x02" + zeros + "\x0A\x0A", 20), IsOk());
  expect("", "malformed variable-length integer");
  expect("\x15" + zeros, "claims 21 factors");
  expect("\x03" + zeros, "has 3 offsets in 8 bytes");
  expect("\x02" + zeros, "ends after 0 bytes");
  expect("\x02" + zeros + "\x0A", "ends after 10 bytes");
  expect("\x02" + zeros + "\x0A\x09", "ends after 19 bytes");
  expect("\x02" + zeros + "\x0A\x09\x01", "2 offsets and more factors");
  expect("\x02" + zeros + "\x0A\x0A\x01", "more factors follow");
  expect("\x03" + zeros + std::string(4, '\0') + "\x0A\x0A\x01",
         "more factors follow");
  expect("\x02" + zeros + "\x0A\x0B", "the 11 bytes at 0");
  expect(absl::StrCat("\x02", std::string("\x01\0\0\0\0\0\0\0\x0A\x0A", 10)),
         "the 10 bytes at 1 of a dictionary of 10 bytes");
  expect("\x03" + zeros + std::string("\0\0\0\0\x0A\x09\x02", 7),
         "gives 21 bytes of text");
  expect(std::string("\0", 1) + "short", "decodes to 5 bytes where 20");
}

}  // namespace
}  // namespace quire
