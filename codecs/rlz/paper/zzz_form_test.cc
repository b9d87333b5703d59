// SPDX-License-Identifier: Apache-2.0
//
// Tests specific to rlz-zzz; block_codec_test.cc covers all codecs.
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/varint.h"
#include "codecs/rlz/paper/factor_form.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"
#include "testing/codecs/deflate_check.h"
#include "testing/codecs/paper_form_testing.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

// A stored block assembled from the format's description alone.
std::string StoredZzzBlock(const std::string& tokens,
                           const std::string& offsets,
                           const std::string& literals) {
  const std::string token_stream = RawDeflate(tokens);
  const std::string offset_stream = offsets.empty() ? "" : RawDeflate(offsets);
  std::string stored;
  AppendVarint(tokens.size(), stored);
  AppendVarint(token_stream.size(), stored);
  AppendVarint(offset_stream.size(), stored);
  return stored + token_stream + offset_stream +
         (literals.empty() ? "" : RawDeflate(literals));
}

TEST(ZzzFormTest, WritesAndReadsTheDocumentedForm) {
  // 300 positions take two bytes.
  TestRandom random(1);
  const std::string dictionary = RandomBytes(random, 300);
  const std::string text = dictionary.substr(258, 30) + "these are literals!!" +
                           dictionary.substr(1, 299) + "x" +
                           dictionary.substr(0, 200);
  CodecUnderTest zzz(CodecId::kRlzZzz, dictionary);
  // 30, runs of 16 and 4, 299, a run of 1, 200.
  const std::string stored = StoredZzzBlock(
      std::string("\x2D\x0F\x03\xBA\x02\0\xD7\x01", 8),
      std::string("\x02\x01\x01\0\0\0", 6), "these are literals!!x");
  EXPECT_EQ(zzz.Encode(text), stored);
  EXPECT_EQ(zzz.Decode(stored, text.size()).value_or(""), text);
}

TEST(ZzzFormTest, LeavesOutStreamsOfNothing) {
  TestRandom random(1);
  const std::string dictionary = RandomBytes(random, 300);
  CodecUnderTest zzz(CodecId::kRlzZzz, dictionary);
  const std::string all = StoredZzzBlock("\xBB\x02", std::string(2, '\0'), "");
  EXPECT_EQ(zzz.Encode(dictionary), all);
  EXPECT_EQ(zzz.Decode(all, 300).value_or(""), dictionary);
  const std::string same(600, '\x01');
  const std::string stored = zzz.Encode(same);
  EXPECT_LT(stored.size(), 60u);
  EXPECT_EQ(zzz.Decode(stored, 600).value_or(""), same);
}

TEST(ZzzFormTest, CodesShortFactorsAsLiterals) {
  const std::string dictionary = "abcd....0123456789";
  CodecUnderTest zzz(CodecId::kRlzZzz, dictionary);
  std::string text;
  for (int i = 0; i < 20; ++i) {
    text += "0123456789abcd";
  }
  EXPECT_EQ(zzz.Encode(text), StoredZzzBlock(
                                  [] {
                                    std::string tokens;
                                    for (int i = 0; i < 20; ++i) {
                                      tokens += "\x19\x03";
                                    }
                                    return tokens;
                                  }(),
                                  std::string(20, '\x08'),
                                  [] {
                                    std::string literals;
                                    for (int i = 0; i < 20; ++i) {
                                      literals += "abcd";
                                    }
                                    return literals;
                                  }()));
}

TEST(ZzzFormTest, NamesWhatIsWrongWithABlock) {
  CodecUnderTest zzz(CodecId::kRlzZzz, "0123456789");
  const auto expect = [&](const std::string& stored, const char* message) {
    EXPECT_THAT(zzz.Decode(stored, 20),
                FailsWith(absl::StatusCode::kDataLoss, HasSubstr(message)));
  };
  const std::string zeros(2, '\0');
  const std::string good = StoredZzzBlock("\x19\x03\x15", zeros, "abcd");
  EXPECT_EQ(zzz.Decode(good, 20).value_or(""), "0123456789abcd012345");
  expect("", "malformed variable-length integer");
  expect(absl::StrCat("\x15", good.substr(1)), "claims 21 bytes of tokens");
  expect(absl::StrCat("\x02", good.substr(1)), "gives 14 bytes of text");
  expect(absl::StrCat("\x04", good.substr(1)),
         "claims 4 bytes of tokens, but has 3");
  expect(good.substr(0, 1) + "\x7F" + good.substr(2), "claims 127 bytes");
  expect(good.substr(0, 2) + "\x7F" + good.substr(3), "127 of offsets");
  expect(good + "x", "literal stream: 1 bytes follow");
  expect(good.substr(0, good.size() - 1), "literal stream: ");
  expect(StoredZzzBlock("\x19\x03\x14", zeros, "abcd"),
         "gives 19 bytes of text");
  expect(StoredZzzBlock("\x19\x03\x16", zeros, "abcd"), "past the block's");
  expect(StoredZzzBlock("\x19\x03\x15\x10", zeros, "abcd"),
         "more factors follow");
  expect(StoredZzzBlock("\x19\x03\x15", zeros, "abc"),
         "3 literals, which are too");
  expect(StoredZzzBlock("\x19\x03\x15", zeros, "abcde"), "more than expected");
  expect(StoredZzzBlock("\x19\x03\x15", zeros, ""), "a stream is missing");
  expect(StoredZzzBlock("\x19\x03\x15", "", "abcd"), "a stream is missing");
  expect(StoredZzzBlock("\x19\x19", zeros, "abcd"),
         "a stream is missing, or not");
  expect(StoredZzzBlock("\x19\x03\x15", std::string(1, '\0'), "abcd"),
         "has 1 offsets");
  expect(StoredZzzBlock("\x19\x03\x15", std::string("\x01\0", 2), "abcd"),
         "the 10 bytes at 1 of a dictionary of 10 bytes");
}

// Far enough from the last factor for the fast loop, which reads in steps.
TEST(ZzzFormTest, MissesEveryLiteralOfALongBlock) {
  TestRandom random(1);
  const std::string dictionary = RandomBytes(random, 300);
  CodecUnderTest zzz(CodecId::kRlzZzz, dictionary);
  std::string tokens;
  std::string literals;
  std::string text;
  for (int i = 0; i < 60; ++i) {
    if (i % 10 == 0 && i < 30) {
      tokens += "\x07";
      literals += "literals";
      text += "literals";
    }
    // 40 bytes from the beginning.
    tokens += "\x37";
    text += dictionary.substr(0, 40);
  }
  const std::string offsets(120, '\0');
  EXPECT_TRUE(zzz.Decode(StoredZzzBlock(tokens, offsets, literals), text.size())
                  .value_or("") == text);
  for (size_t size = 1; size < literals.size(); ++size) {
    EXPECT_THAT(
        zzz.Decode(StoredZzzBlock(tokens, offsets, literals.substr(0, size)),
                   text.size()),
        FailsWith(absl::StatusCode::kDataLoss, HasSubstr("which are too few")))
        << size;
  }
}

}  // namespace
}  // namespace quire
