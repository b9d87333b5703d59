// SPDX-License-Identifier: Apache-2.0
#include "codecs/deflate/deflate_encoder.h"

#include <zlib.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/status_matchers.h"
#include "codecs/codec_test_inputs.h"

namespace quire {
namespace {

constexpr uint64_t kSeed = 19;

std::string ByZlib(const DeflateParameters& parameters,
                   const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, parameters.level, Z_DEFLATED,
                         -parameters.window_bits, parameters.memory_level,
                         static_cast<int>(parameters.strategy)),
            Z_OK);
  std::string stored(deflateBound(&stream, text.size()) + 100, '\0');
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(stored.data());
  stream.avail_out = static_cast<uInt>(stored.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  stored.resize(stream.total_out);
  deflateEnd(&stream);
  return stored;
}

std::string Encoded(DeflateEncoder& encoder,
                    const DeflateParameters& parameters,
                    const std::string& text) {
  std::string stored;
  QUIRE_EXPECT_OK(
      encoder.Encode(parameters, AsBytes(text), [&](ByteView bytes) {
        stored.append(bytes.begin(), bytes.end());
        return true;
      }));
  return stored;
}

// Texts that matchers meet: all kinds of TestInputs(), mixed as well.
std::vector<TestInput> Texts(TestRandom& random, size_t size) {
  const std::string dictionary = RandomText(random, 40000);
  std::vector<TestInput> texts = TestInputs(random, size, dictionary);
  std::string mixed;
  while (mixed.size() < size) {
    const size_t piece = 1 + RandomBelow(random, 3000);
    switch (RandomBelow(random, 4)) {
      case 0:
        mixed += RandomBytes(random, piece);
        break;
      case 1:
        mixed.append(piece, static_cast<char>(RandomBelow(random, 3)));
        break;
      case 2:
        mixed += RandomText(random, piece, 50);
        break;
      default:
        mixed += mixed.substr(RandomBelow(random, mixed.size() + 1), piece);
    }
  }
  mixed.resize(size);
  texts.push_back({"mixed", mixed});
  return texts;
}

TEST(DeflateEncoderTest, MakesWhatZlibMakes) {
  TestRandom random(kSeed);
  DeflateEncoder encoder;
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{2}, size_t{3}, size_t{4}, size_t{10},
        size_t{261}, size_t{263}, size_t{5000}, size_t{65275}, size_t{65536},
        size_t{300000}}) {
    for (const TestInput& input : Texts(random, size)) {
      for (uint8_t level = 1; level <= 9; ++level) {
        for (const auto strategy :
             {DeflateStrategy::kDefault, DeflateStrategy::kFiltered,
              DeflateStrategy::kHuffmanOnly, DeflateStrategy::kRle,
              DeflateStrategy::kFixed}) {
          const DeflateParameters parameters = {
              .level = level,
              .memory_level = static_cast<uint8_t>(1 + RandomBelow(random, 9)),
              .window_bits = static_cast<uint8_t>(9 + RandomBelow(random, 7)),
              .strategy = strategy};
          ASSERT_TRUE(Encoded(encoder, parameters, input.text) ==
                      ByZlib(parameters, input.text))
              << input.name << ", " << size << " bytes, "
              << DeflateParametersText(parameters);
        }
      }
    }
  }
}

}  // namespace
}  // namespace quire
