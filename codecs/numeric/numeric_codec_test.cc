// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/block_codec.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<BlockCodec> Make(absl::string_view name) {
  return *MakeBlockCodec(*ParseCodecSpec(name), nullptr,
                         CodecUse::kEncodeAndDecode);
}

template <typename Number>
std::string Wave(size_t count, bool big_endian) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    const auto value = static_cast<Number>(
        1000 * std::sin(static_cast<double>(i) / 500) + 2000);
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    if (big_endian) {
      std::reverse(bytes, bytes + sizeof(value));
    }
    text.append(bytes, sizeof(value));
  }
  return text;
}

void ExpectSmallerThanZstd(const std::string& text, double factor) {
  const auto numeric = Make("numeric");
  const std::string stored = EncodeText(*numeric, text);
  EXPECT_LT(
      static_cast<double>(stored.size()),
      factor * static_cast<double>(EncodeText(*Make("zstd"), text).size()));
  std::string back(text.size(), '\0');
  const auto scratch = numeric->NewScratch();
  QUIRE_EXPECT_OK(
      numeric->Decode(AsBytes(stored), AsMutableBytes(back), *scratch));
  EXPECT_EQ(back, text);
}

TEST(NumericCodecTest, MakesNumbersSmallerThanZstdDoes) {
  for (const bool big_endian : {false, true}) {
    ExpectSmallerThanZstd(Wave<float>(20'000, big_endian), 0.9);
    ExpectSmallerThanZstd(Wave<double>(20'000, big_endian), 0.9);
    ExpectSmallerThanZstd(Wave<int16_t>(20'000, big_endian), 0.9);
  }
}

// One byte, which names the transform.
TEST(NumericCodecTest, TextCostsOneByteMoreThanZstd) {
  TestRandom random(2);
  const std::string text = RandomText(random, 100'000);
  EXPECT_EQ(EncodeText(*Make("numeric"), text).size(),
            1 + EncodeText(*Make("zstd"), text).size());
}

// The trial sees the middle, where a transform helps; it enlarges the rest.
TEST(NumericCodecTest, NumbersInTheMiddleDoNotRearrangeText) {
  TestRandom random(3);
  const std::string text = RandomText(random, 64 << 10) +
                           Wave<float>(8 << 10, /*big_endian=*/false) +
                           RandomText(random, 64 << 10);
  EXPECT_EQ(EncodeText(*Make("numeric"), text).size(),
            1 + EncodeText(*Make("zstd"), text).size());
}

TEST(NumericCodecTest, RefusesUnknownTransforms) {
  const auto codec = Make("numeric");
  const auto scratch = codec->NewScratch();
  const std::string text(1000, 'a');
  std::string stored = EncodeText(*codec, text);
  std::string raw(text.size(), '\0');
  for (const char header : {'\x10', '\x01', '\x41', '\x14', '\xFF'}) {
    stored[0] = header;
    EXPECT_THAT(codec->Decode(AsBytes(stored), AsMutableBytes(raw), *scratch),
                FailsWith(absl::StatusCode::kDataLoss,
                          HasSubstr("no transform of kind")));
  }
  EXPECT_THAT(codec->Decode({}, AsMutableBytes(raw), *scratch),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("no byte that names the transform")));
}

}  // namespace
}  // namespace quire
