// SPDX-License-Identifier: Apache-2.0
#include "codecs/zstd/decoder/huffman_literals.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"

#include "testing/codecs/codec_test_inputs.h"
#include "testing/codecs/zstd_test_bits.h"

namespace quire {
namespace {

using Bytes = std::vector<uint8_t>;

// A table of 11 bits: symbols 0 to 9 have codes of 11, 11, 10, 9 ... 3 bits, 10
// to 12 of 2 bits. The last weight is left out.
const Bytes kWeights = {1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10};
constexpr unsigned kLog = 11;
constexpr unsigned kLastWeight = 10;

Bytes DirectTable(const Bytes& weights) {
  Bytes table = {static_cast<uint8_t>(127 + weights.size())};
  for (size_t i = 0; i < weights.size(); i += 2) {
    const unsigned first = weights[i];
    const unsigned second = i + 1 < weights.size() ? weights[i + 1] : 0u;
    table.push_back(static_cast<uint8_t>(first << 4 | second));
  }
  return table;
}

struct Code {
  unsigned value;
  unsigned size;
};

// Codes are numbered from the lightest weight.
std::vector<Code> Codes() {
  Bytes weights = kWeights;
  weights.push_back(kLastWeight);
  std::vector<Code> codes(weights.size());
  unsigned start = 0;
  for (unsigned weight = 1; weight <= kLog; ++weight) {
    for (size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] == weight) {
        codes[i] = {start >> (weight - 1), kLog + 1 - weight};
        start += 1u << (weight - 1);
      }
    }
  }
  EXPECT_EQ(start, 1u << kLog);
  return codes;
}

Bytes Encode(ByteView text) {
  static const std::vector<Code> codes = Codes();
  TestBitWriter writer;
  for (size_t i = text.size(); i > 0; --i) {
    writer.Write(codes[text[i - 1]].value, codes[text[i - 1]].size);
  }
  return writer.Stream();
}

Bytes EncodeFour(ByteView text) {
  const size_t segment = (text.size() + 3) / 4;
  Bytes jumps;
  Bytes streams;
  for (size_t i = 0; i < 4; ++i) {
    const Bytes stream = Encode(i < 3 ? text.subspan(i * segment, segment)
                                      : text.subspan(3 * segment));
    if (i < 3) {
      jumps.push_back(static_cast<uint8_t>(stream.size()));
      jumps.push_back(static_cast<uint8_t>(stream.size() >> 8));
    }
    streams.insert(streams.end(), stream.begin(), stream.end());
  }
  jumps.insert(jumps.end(), streams.begin(), streams.end());
  return jumps;
}

Bytes RandomSymbols(TestRandom& random, size_t size) {
  Bytes text(size);
  std::ranges::generate(text, [&] {
    return static_cast<uint8_t>(RandomBelow(random, kWeights.size() + 1));
  });
  return text;
}

class HuffmanLiteralsTest : public ::testing::Test {
 protected:
  size_t ReadTable(const Bytes& stored) {
    const TestStream stream(stored);
    return huffman_.ReadTable(stream.view());
  }

  // True if it decodes to `text`.
  bool Decodes(const Bytes& stored, const Bytes& text, bool is_four) {
    const TestStream stream(stored);
    Bytes out(text.size());
    return (is_four ? huffman_.DecodeFour(stream.view(), out)
                    : huffman_.DecodeOne(stream.view(), out)) &&
           out == text;
  }

  HuffmanLiterals huffman_;
};

TEST_F(HuffmanLiteralsTest, DecodesOneStreamAndFour) {
  ASSERT_EQ(ReadTable(DirectTable(kWeights)), 1 + kWeights.size() / 2);
  TestRandom random(1);
  for (size_t size = 1; size < 400; ++size) {
    const Bytes text = RandomSymbols(random, size);
    EXPECT_TRUE(Decodes(Encode(text), text, false)) << size;
    // Smaller texts give an empty stream, which no encoder writes.
    if (size > 9) {
      EXPECT_TRUE(Decodes(EncodeFour(text), text, true)) << size;
    }
  }
  const Bytes text = RandomSymbols(random, 20000);
  EXPECT_TRUE(Decodes(EncodeFour(text), text, true));
}

TEST_F(HuffmanLiteralsTest, WantsStreamsToEndWithTheirText) {
  ASSERT_NE(ReadTable(DirectTable(kWeights)), 0u);
  TestRandom random(1);
  const Bytes text = RandomSymbols(random, 500);
  for (const bool is_four : {false, true}) {
    const Bytes stored = is_four ? EncodeFour(text) : Encode(text);
    Bytes longer = text;
    longer.push_back(3);
    EXPECT_FALSE(Decodes(stored, longer, is_four));
    const Bytes shorter(text.begin(), text.end() - 1);
    EXPECT_FALSE(Decodes(stored, shorter, is_four));
    for (size_t size = 0; size < stored.size(); ++size) {
      const Bytes cut(stored.begin(),
                      stored.begin() + static_cast<ptrdiff_t>(size));
      EXPECT_FALSE(Decodes(cut, text, is_four)) << size;
    }
    Bytes unmarked = stored;
    unmarked.back() = 0;
    EXPECT_FALSE(Decodes(unmarked, text, is_four));
  }
}

TEST_F(HuffmanLiteralsTest, RefusesWrongTablesAndForgetsTheOneBefore) {
  const std::vector<Bytes> wrong = {
      {},
      {0},
      // Truncated.
      {130, 0x11},
      DirectTable({0, 0, 0}),
      // The rest is not a power of two.
      DirectTable({3, 1}),
      // The longest codes do not come in pairs.
      DirectTable({2, 3}),
      // Codes of more than 11 bits.
      DirectTable({1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}),
      DirectTable({12, 12}),
  };
  for (const Bytes& table : wrong) {
    ASSERT_NE(ReadTable(DirectTable(kWeights)), 0u);
    EXPECT_TRUE(huffman_.has_table());
    EXPECT_EQ(ReadTable(table), 0u);
    EXPECT_FALSE(huffman_.has_table());
  }
  EXPECT_EQ(ReadTable(DirectTable({1, 1, 2, 3})), 3u);
}

// Weights in FSE: of 0 and 1 equally often, so that each weight after the first
// two takes a bit.
TEST_F(HuffmanLiteralsTest, TakesUpToTheWeightsOfAllBytes) {
  TestRandom random(1);
  for (const size_t weight_count : {size_t{255}, size_t{256}}) {
    size_t taken_count = 0;
    for (int i = 0; i < 2000; ++i) {
      TestBitWriter writer;
      for (size_t bit = 0; bit < weight_count - 2; ++bit) {
        writer.Write(RandomBelow(random, 2), 1);
      }
      // The states to begin with are read first.
      writer.Write(RandomBelow(random, 1 << 10), 10);
      const Bytes stream = writer.Stream();
      // 32 states; 16 and 16 of them for the weights.
      Bytes table = {static_cast<uint8_t>(2 + stream.size()), 0x10, 0x3F};
      table.insert(table.end(), stream.begin(), stream.end());
      taken_count += ReadTable(table) == table.size() ? 1 : 0;
    }
    // Those whose weights leave a power of two for the last.
    EXPECT_EQ(taken_count > 0, weight_count == 255) << taken_count;
  }
}

}  // namespace
}  // namespace quire
