// SPDX-License-Identifier: Apache-2.0
#include "codecs/numeric/byte_transform.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes Apply(const ByteTransform& transform, const Bytes& from) {
  Bytes work(from.size());
  Bytes to(from.size());
  ApplyTransform(transform, from, work, to);
  return to;
}

TEST(ByteTransformTest, ComesBackForAnySize) {
  TestRandom random(1);
  for (const TransformKind kind :
       {TransformKind::kNone, TransformKind::kShuffle,
        TransformKind::kShuffleDelta, TransformKind::kBitShuffle}) {
    for (const uint8_t width : {uint8_t{2}, uint8_t{4}, uint8_t{8}}) {
      const ByteTransform transform = {
          kind, kind == TransformKind::kNone ? uint8_t{1} : width};
      for (size_t size = 0; size < 300; ++size) {
        const std::string text = RandomBytes(random, size);
        const Bytes from(text.begin(), text.end());
        Bytes rearranged = Apply(transform, from);
        Bytes back(size);
        UndoTransform(transform, rearranged, back);
        ASSERT_EQ(back, from) << size;
      }
    }
  }
}

Bytes Counting(size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<uint8_t>(i);
  }
  return bytes;
}

// The format on disk.
TEST(ByteTransformTest, ShufflesIntoPlanes) {
  EXPECT_THAT(Apply({TransformKind::kShuffle, 2}, Counting(18)),
              ::testing::ElementsAre(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9,
                                     11, 13, 15, 16, 17));
}

TEST(ByteTransformTest, TakesDifferencesWithinPlanes) {
  EXPECT_THAT(Apply({TransformKind::kShuffleDelta, 2}, Counting(17)),
              ::testing::ElementsAre(0, 2, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2,
                                     2, 2, 16));
}

TEST(ByteTransformTest, SplitsBitsOfPlanes) {
  Bytes from(16);
  from[0] = 1;     // number 0, low byte: bit 0
  from[15] = 128;  // number 7, high byte: bit 7
  Bytes expected(16);
  expected[0] = 1;
  expected[15] = 128;
  EXPECT_EQ(Apply({TransformKind::kBitShuffle, 2}, from), expected);
  from = Bytes(16);
  from[2] = 8;  // number 1, low byte: bit 3
  expected = Bytes(16);
  expected[3] = 2;
  EXPECT_EQ(Apply({TransformKind::kBitShuffle, 2}, from), expected);
}

}  // namespace
}  // namespace quire
