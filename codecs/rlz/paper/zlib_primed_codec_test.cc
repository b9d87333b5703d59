// SPDX-License-Identifier: Apache-2.0
//
// Tests specific to zlib-primed; block_codec_test.cc covers all codecs.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/bytes.h"
#include "codecs/base/varint.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"
#include "testing/codecs/deflate_check.h"
#include "testing/codecs/paper_form_testing.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

TEST(ZlibPrimedCodecTest, WritesAndReadsTheDocumentedForm) {
  TestRandom random(1);
  const std::string dictionary = RandomBytes(random, 200000);
  const std::string text = dictionary.substr(120000, 4000) + "and more" +
                           dictionary.substr(118000, 3000);
  CodecUnderTest codec(CodecId::kZlibPrimed, dictionary);
  const std::string stored = codec.Encode(text);
  EXPECT_LT(stored.size(), 300u);
  ByteView rest = AsBytes(stored);
  QUIRE_ASSERT_OK_AND_ASSIGN(const uint64_t window, TakeVarint(rest));
  EXPECT_EQ(AsText(rest), RawDeflate(text, dictionary.substr(window, 32768)));
  EXPECT_TRUE(codec.Decode(stored, text.size()).value_or("") == text);
  // Any window is valid that contains the matches, also at the dictionary's
  // end.
  for (const size_t at :
       {size_t{0}, dictionary.size() - 100, dictionary.size()}) {
    std::string other;
    AppendVarint(at, other);
    other += RawDeflate(text, dictionary.substr(at, 32768));
    EXPECT_TRUE(codec.Decode(other, text.size()).value_or("") == text);
  }
}

TEST(ZlibPrimedCodecTest, NamesWhatIsWrongWithABlock) {
  CodecUnderTest codec(CodecId::kZlibPrimed, "0123456789");
  const auto expect = [&](const std::string& stored, const char* message) {
    EXPECT_THAT(codec.Decode(stored, 20),
                FailsWith(absl::StatusCode::kDataLoss, HasSubstr(message)));
  };
  const std::string text = "01234567890123456789";
  const std::string stream = RawDeflate(text, "0123456789");
  EXPECT_EQ(codec.Decode(std::string(1, '\0') + stream, 20).value_or(""), text);
  expect("", "malformed variable-length integer");
  expect("\x0B" + stream, "window at 11 of a dictionary of 10 bytes");
  // The match would begin before the window.
  expect("\x05" + stream, "malformed DEFLATE stream");
  expect(std::string(1, '\0') + stream + "x", "1 bytes follow");
  expect(std::string(1, '\0') + RawDeflate("short"), "decodes to 5 bytes");
}

}  // namespace
}  // namespace quire
