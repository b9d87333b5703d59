// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/parse/cheapest_steps.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr uint32_t kSize = 40;
constexpr uint32_t kPriceCount = 44;

void ExpectEqual(const CheapestSteps& a, const CheapestSteps& b) {
  for (uint32_t position = 0; position <= kSize; ++position) {
    for (const uint32_t path :
         {CheapestSteps::kCheapest, CheapestSteps::kRival}) {
      SCOPED_TRACE(position * 10 + path);
      ASSERT_EQ(a.Cost(position, path), b.Cost(position, path));
      if (a.Cost(position, path) != CheapestSteps::kUnreached) {
        ASSERT_EQ(a.Length(position, path), b.Length(position, path));
        ASSERT_EQ(a.Distance(position, path), b.Distance(position, path));
        ASSERT_EQ(a.Before(position, path), b.Before(position, path));
      }
    }
  }
}

// Offering all lengths at once must equal offering them one by one, for any
// known paths, up to the last position, without touching other lengths.
template <bool kRivals>
void ExpectTogetherAsOneByOne(uint32_t distance) {
  std::array<int32_t, kPriceCount> prices = {};
  for (uint32_t i = 0; i < kPriceCount; ++i) {
    prices[i] = static_cast<int32_t>(i * 37 % 50);
  }
  for (uint32_t first = 3; first < 12; ++first) {
    for (uint32_t last = first; last <= kSize; ++last) {
      CheapestSteps together;
      CheapestSteps single;
      for (CheapestSteps* steps : {&together, &single}) {
        steps->Start(kSize, 0, 1);
        for (uint32_t to = 5; to <= kSize; to += 3) {
          steps->OfferCopy<kRivals>(0, 0, to, 7,
                                    static_cast<int32_t>(to * 29 % 60));
          steps->OfferCopy<kRivals>(0, 0, to, 8,
                                    static_cast<int32_t>(to * 31 % 60));
        }
      }
      together.OfferLengths<kRivals>(0, 1, first, last, distance, 10,
                                     prices.data());
      for (uint32_t length = first; length <= last; ++length) {
        single.OfferCopy<kRivals>(0, 1, length, distance, 10 + prices[length]);
      }
      SCOPED_TRACE(first * 100 + last);
      ExpectEqual(together, single);
    }
  }
}

TEST(CheapestStepsTest, ManyLengthsAreAsOneByOne) {
  // A new distance, and each of the known ones.
  for (const uint32_t distance : {0x89ABCDEFu, 7u, 8u}) {
    ExpectTogetherAsOneByOne<false>(distance);
    ExpectTogetherAsOneByOne<true>(distance);
  }
}

TEST(CheapestStepsTest, TheFirstOfEqualsStays) {
  CheapestSteps steps;
  steps.Start(4, 5, 9);
  EXPECT_EQ(steps.Cost(0), 5);
  EXPECT_EQ(steps.Cost(1), CheapestSteps::kUnreached);
  steps.OfferLiteral<false>(0, 0, 9, 20);
  EXPECT_EQ(steps.Length(1), 0u);
  EXPECT_EQ(steps.Distance(1), 9u);
  steps.OfferCopy<false>(0, 0, 4, 100, 30);
  steps.OfferCopy<false>(0, 0, 4, 200, 30);
  steps.OfferLiteral<false>(3, 0, 100, 30);
  EXPECT_EQ(steps.Length(4), 4u);
  EXPECT_EQ(steps.Distance(4), 100u);
  steps.OfferLiteral<false>(3, 0, 100, 29);
  EXPECT_EQ(steps.Length(4), 0u);
  EXPECT_EQ(steps.Cost(4), 29);
  EXPECT_EQ(steps.Cost(4, CheapestSteps::kRival), CheapestSteps::kUnreached);
}

// The two cheapest offers of different distances stay, in any order.
TEST(CheapestStepsTest, TheRivalHasAnotherDistance) {
  struct Offer {
    uint32_t distance;
    int32_t cost;
  };

  std::vector<Offer> offers = {{1, 10}, {1, 12}, {2, 11}, {2, 15}, {3, 14}};
  const auto is_less = [](const Offer& a, const Offer& b) {
    return a.cost < b.cost;
  };
  std::ranges::sort(offers, is_less);
  do {
    CheapestSteps steps;
    steps.Start(4, 0, 9);
    for (const Offer& offer : offers) {
      steps.OfferCopy<true>(0, 0, 4, offer.distance, offer.cost);
    }
    EXPECT_EQ(steps.Cost(4), 10);
    EXPECT_EQ(steps.Distance(4), 1u);
    EXPECT_EQ(steps.Cost(4, CheapestSteps::kRival), 11);
    EXPECT_EQ(steps.Distance(4, CheapestSteps::kRival), 2u);
  } while (std::ranges::next_permutation(offers, is_less).found);
}

TEST(CheapestStepsTest, PathsAreContinuedByNumber) {
  CheapestSteps steps;
  steps.Start(8, 0, 9);
  steps.OfferCopy<true>(0, CheapestSteps::kCheapest, 4, 1, 10);
  steps.OfferCopy<true>(0, CheapestSteps::kCheapest, 4, 2, 12);
  steps.OfferCopy<true>(4, CheapestSteps::kRival, 4, 2, 13);
  steps.OfferLiteral<true>(4, CheapestSteps::kRival, 2, 14);
  EXPECT_EQ(steps.Before(8), CheapestSteps::kRival);
  EXPECT_EQ(steps.Length(8), 4u);
  EXPECT_EQ(steps.Before(5), CheapestSteps::kRival);
  EXPECT_EQ(steps.Length(5), 0u);
  EXPECT_EQ(steps.Before(4, CheapestSteps::kRival), CheapestSteps::kCheapest);
}

TEST(CheapestStepsTest, StartForgets) {
  CheapestSteps steps;
  steps.Start(3, 0, 9);
  steps.OfferCopy<true>(0, 0, 3, 9, 1);
  steps.OfferCopy<true>(0, 0, 3, 8, 2);
  steps.Start(3, 0, 9);
  EXPECT_EQ(steps.Cost(3), CheapestSteps::kUnreached);
  EXPECT_EQ(steps.Cost(3, CheapestSteps::kRival), CheapestSteps::kUnreached);
}

}  // namespace
}  // namespace quire
