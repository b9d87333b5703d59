// SPDX-License-Identifier: Apache-2.0
#include "codecs/zstd/decoder/backward_bits.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "testing/codecs/codec_test_inputs.h"
#include "testing/codecs/zstd_test_bits.h"

namespace quire {
namespace {

TEST(BackwardBitsTest, ReadsWhatWasWrittenLastFirst) {
  TestRandom random(1);
  for (size_t count = 0; count < 300; ++count) {
    std::vector<std::pair<uint64_t, unsigned>> numbers;
    TestBitWriter writer;
    for (size_t i = 0; i < count; ++i) {
      const auto size = static_cast<unsigned>(RandomBelow(random, 32));
      const uint64_t value = random() & ((uint64_t{1} << size) - 1);
      numbers.emplace_back(value, size);
      writer.Write(value, size);
    }
    const TestStream stream(writer.Stream());
    BackwardBits bits;
    ASSERT_TRUE(bits.Open(stream.view()));
    while (!numbers.empty()) {
      ASSERT_TRUE(bits.Refill());
      EXPECT_EQ(bits.Read(numbers.back().second), numbers.back().first);
      numbers.pop_back();
    }
    EXPECT_EQ(bits.UnreadBits(), 0);
  }
}

TEST(BackwardBitsTest, WantsAnEndMark) {
  BackwardBits bits;
  EXPECT_FALSE(bits.Open({}));
  const TestStream stream(std::vector<uint8_t>{1, 0});
  EXPECT_FALSE(bits.Open(stream.view()));
}

TEST(BackwardBitsTest, CountsWhatIsReadTooMuchAndStopsSoon) {
  const TestStream stream(std::vector<uint8_t>{0xFF});
  BackwardBits bits;
  ASSERT_TRUE(bits.Open(stream.view()));
  EXPECT_EQ(bits.UnreadBits(), 7);
  bits.Read(10);
  EXPECT_EQ(bits.UnreadBits(), -3);
  int reads = 0;
  while (bits.Refill()) {
    bits.Read(10);
    ASSERT_LT(bits.UnreadBits(), 0);
    ASSERT_LT(++reads, 20);
  }
}

}  // namespace
}  // namespace quire
