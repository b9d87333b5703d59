// SPDX-License-Identifier: Apache-2.0
#include "codecs/zlib/zlib_stream.h"

#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"
#include "testing/codecs/deflate_check.h"

namespace quire {
namespace {

std::string Compress(DeflateStream& stream, const std::string& text,
                     const std::string& dictionary = "") {
  std::string stored(DeflateSizeMax(text.size()), '\0');
  const auto size = stream.Compress(AsBytes(text), AsMutableBytes(stored),
                                    AsBytes(dictionary));
  EXPECT_THAT(size, IsOk());
  EXPECT_LE(size.value_or(0), stored.size());
  return stored.substr(0, size.value_or(0));
}

// With or without a dictionary, which must not affect the next stream.
TEST(DeflateStreamTest, WritesWhatZlibWrites) {
  TestRandom random(51);
  const std::string dictionary = RandomText(random, 50000);
  for (const int level : {1, 6, 9}) {
    DeflateStream stream(level);
    for (const size_t size :
         std::initializer_list<size_t>{0, 1, 100, 5000, 100000}) {
      for (const TestInput& input : TestInputs(random, size, dictionary)) {
        SCOPED_TRACE(absl::StrCat(input.name, ", level ", level));
        EXPECT_TRUE(Compress(stream, input.text, dictionary) ==
                    RawDeflate(input.text, dictionary, level));
        EXPECT_TRUE(Compress(stream, input.text) ==
                    RawDeflate(input.text, "", level));
      }
    }
  }
}

TEST(DeflateStreamTest, LooksAtTheLastOfALargeDictionary) {
  TestRandom random(52);
  const std::string dictionary = RandomBytes(random, 100000);
  const std::string last = dictionary.substr(dictionary.size() - 32768);
  DeflateStream stream(6);
  const std::string near = last.substr(1000, 4000);
  EXPECT_LT(Compress(stream, near, dictionary).size(), 200u);
  EXPECT_TRUE(Compress(stream, near, dictionary) ==
              Compress(stream, near, last));
  const std::string far = dictionary.substr(1000, 4000);
  EXPECT_GT(Compress(stream, far, dictionary).size(), 4000u);
}

TEST(DeflateStreamTest, SaysHowLargeAStreamCanBe) {
  TestRandom random(53);
  for (const int level : {1, 9}) {
    DeflateStream stream(level);
    for (size_t size = 0; size <= 200000; size = size * 2 + 1) {
      // Checks the size.
      Compress(stream, RandomBytes(random, size));
    }
  }
}

// Less space than required is an error, and does not affect later calls.
TEST(DeflateStreamTest, GoesOnAfterAnError) {
  TestRandom random(54);
  const std::string text = RandomBytes(random, 5000);
  DeflateStream stream(6);
  std::vector<uint8_t> stored(100);
  EXPECT_THAT(stream.Compress(AsBytes(text), stored),
              HasCode(absl::StatusCode::kInternal));
  EXPECT_TRUE(Compress(stream, text) == RawDeflate(text, "", 6));
}

}  // namespace
}  // namespace quire
