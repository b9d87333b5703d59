// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/parse/cheapest_steps.h"

#include <array>
#include <cstdint>

#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr uint32_t kSize = 40;
constexpr uint32_t kPriceCount = 44;

void ExpectEqual(const CheapestSteps& a, const CheapestSteps& b) {
  for (uint32_t position = 0; position <= kSize; ++position) {
    SCOPED_TRACE(position);
    ASSERT_EQ(a.Cost(position), b.Cost(position));
    if (a.Cost(position) != CheapestSteps::kUnreached) {
      ASSERT_EQ(a.Length(position), b.Length(position));
      ASSERT_EQ(a.Distance(position), b.Distance(position));
    }
  }
}

// Offering all lengths at once must equal offering them one by one, for any
// known paths, up to the last position, without touching other lengths.
TEST(CheapestStepsTest, ManyLengthsAreAsOneByOne) {
  std::array<int32_t, kPriceCount> prices = {};
  for (uint32_t i = 0; i < kPriceCount; ++i) {
    prices[i] = static_cast<int32_t>(i * 37 % 50);
  }
  for (uint32_t first = 3; first < 12; ++first) {
    for (uint32_t last = first; last <= kSize; ++last) {
      CheapestSteps together;
      CheapestSteps single;
      for (CheapestSteps* steps : {&together, &single}) {
        steps->Start(kSize);
        steps->SetStart(0);
        for (uint32_t to = 5; to <= kSize; to += 3) {
          steps->OfferCopy(0, to, 7, static_cast<int32_t>(to * 29 % 60));
        }
      }
      together.OfferLengths(0, first, last, 0x89ABCDEF, 10, prices.data());
      for (uint32_t length = first; length <= last; ++length) {
        single.OfferCopy(0, length, 0x89ABCDEF, 10 + prices[length]);
      }
      SCOPED_TRACE(first * 100 + last);
      ExpectEqual(together, single);
    }
  }
}

TEST(CheapestStepsTest, TheFirstOfEqualsStays) {
  CheapestSteps steps;
  steps.Start(4);
  steps.SetStart(5);
  EXPECT_EQ(steps.Cost(0), 5);
  EXPECT_EQ(steps.Cost(1), CheapestSteps::kUnreached);
  steps.OfferLiteral(0, 20);
  EXPECT_EQ(steps.Length(1), 0u);
  steps.OfferCopy(0, 4, 100, 30);
  steps.OfferCopy(0, 4, 200, 30);
  steps.OfferLiteral(3, 30);
  EXPECT_EQ(steps.Length(4), 4u);
  EXPECT_EQ(steps.Distance(4), 100u);
  steps.OfferLiteral(3, 29);
  EXPECT_EQ(steps.Length(4), 0u);
  EXPECT_EQ(steps.Cost(4), 29);
}

TEST(CheapestStepsTest, StartForgets) {
  CheapestSteps steps;
  steps.Start(3);
  steps.SetStart(0);
  steps.OfferCopy(0, 3, 9, 1);
  steps.Start(3);
  EXPECT_EQ(steps.Cost(3), CheapestSteps::kUnreached);
}

}  // namespace
}  // namespace quire
