// SPDX-License-Identifier: Apache-2.0
#include "codecs/reorder/offset_list.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace quire {
namespace {

TEST(OffsetListTest, EmptyHasNone) {
  EXPECT_EQ(OffsetList().size(), 0u);
  EXPECT_EQ(OffsetList().CountBelow(0), 0u);
  EXPECT_EQ(OffsetList().CountBelow(UINT64_MAX), 0u);
}

TEST(OffsetListTest, KeepsOffsetsOverManyHighHalves) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    OffsetList list;
    std::vector<uint64_t> expected;
    uint64_t offset = seed % 2 == 0 ? 0 : random() >> 28;
    for (size_t i = random() % 300; i > 0; --i) {
      list.Append(offset);
      expected.push_back(offset);
      // Small steps, zero, steps over several high halves and to their edges.
      switch (random() % 5) {
        case 0:
          break;
        case 1:
          offset += random() >> 29;
          break;
        case 2:
          offset |= 0xFFFFFFFFu;
          break;
        default:
          offset += random() % 5000;
      }
    }
    ASSERT_EQ(list.size(), expected.size());
    const auto expect_count = [&](uint64_t limit) {
      EXPECT_EQ(list.CountBelow(limit),
                static_cast<size_t>(std::ranges::lower_bound(expected, limit) -
                                    expected.begin()))
          << limit;
    };
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(list[i], expected[i]) << i;
      expect_count(expected[i]);
      expect_count(expected[i] + 1);
      expect_count(expected[i] - std::min<uint64_t>(expected[i], 1));
    }
    expect_count(0);
    expect_count(UINT64_MAX);
  }
}

TEST(OffsetListTest, TakesFourBytesEach) {
  OffsetList list;
  for (uint64_t i = 0; i < 100'000; ++i) {
    list.Append(i << 20);
  }
  EXPECT_LT(list.MemoryBytes(), 401'000u);
}

}  // namespace
}  // namespace quire
