// SPDX-License-Identifier: Apache-2.0
#include "loadtest/requests/seeded_permutation.h"

#include <cstdlib>
#include <initializer_list>
#include <vector>

#include "gtest/gtest.h"

namespace quire {
namespace {

TEST(SeededPermutationTest, HitsEveryValueOnce) {
  for (const uint64_t size : std::initializer_list<uint64_t>{
           1, 2, 3, 4, 5, 16, 17, 255, 1000, 4097}) {
    for (const uint64_t seed : std::initializer_list<uint64_t>{0, 1, 12345}) {
      const SeededPermutation permutation(seed, size);
      std::vector<bool> hit(size);
      for (uint64_t value = 0; value < size; ++value) {
        const uint64_t image = permutation(value);
        ASSERT_LT(image, size);
        ASSERT_FALSE(hit[image]) << size << " " << value;
        hit[image] = true;
      }
    }
  }
}

TEST(SeededPermutationTest, SpreadsNeighbours) {
  constexpr uint64_t kSize = 100'000;
  const SeededPermutation permutation(7, kSize);
  uint64_t distance = 0;
  uint64_t upper_half = 0;
  for (uint64_t value = 0; value < 1000; ++value) {
    const auto image = static_cast<int64_t>(permutation(value));
    const auto next = static_cast<int64_t>(permutation(value + 1));
    distance += static_cast<uint64_t>(std::abs(image - next));
    upper_half += permutation(value) >= kSize / 2 ? 1 : 0;
  }
  // The mean distance of two random positions is a third of the size.
  EXPECT_NEAR(static_cast<double>(distance) / 1000, kSize / 3.0, kSize / 20.0);
  EXPECT_NEAR(static_cast<double>(upper_half), 500, 80);
}

TEST(SeededPermutationTest, DependsOnTheSeedAndTakesLargeSizes) {
  constexpr uint64_t kSize = (uint64_t{1} << 50) + 12345;
  const SeededPermutation first(1, kSize);
  const SeededPermutation second(2, kSize);
  uint64_t same = 0;
  for (uint64_t value = 0; value < 100; ++value) {
    EXPECT_LT(first(value), kSize);
    same += first(value) == second(value) ? 1 : 0;
  }
  EXPECT_EQ(same, 0u);
}

}  // namespace
}  // namespace quire
