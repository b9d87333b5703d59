// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/decimal_range.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

void ExpectLikeSortedTexts(const DecimalRange& range) {
  std::vector<std::string> texts;
  for (uint64_t i = 0; i < range.count; ++i) {
    texts.push_back(absl::StrCat(range.first + i));
  }
  std::sort(texts.begin(), texts.end());
  std::vector<std::string> keys = {
      "",     "0", "00", "9", ":", "/", "x", "1", "10", std::string("\0", 1),
      "1\xFF"};
  for (size_t i = 0; i < texts.size(); ++i) {
    ASSERT_EQ(absl::StrCat(range.NumberAt(i)), texts[i]) << i;
    for (const char* end : {"", "0", "9", "/", ":", "5x"}) {
      keys.push_back(texts[i] + end);
    }
    keys.push_back(texts[i].substr(0, texts[i].size() - 1));
    keys.push_back("0" + texts[i]);
  }
  for (const std::string& key : keys) {
    ASSERT_EQ(
        range.CountBelow(key),
        static_cast<uint64_t>(
            std::lower_bound(texts.begin(), texts.end(), key) - texts.begin()))
        << key << " from " << range.first << ", " << range.count;
  }
}

TEST(DecimalRangeTest, SortsAsTextsDo) {
  for (const uint64_t first :
       {0u, 1u, 2u, 8u, 9u, 10u, 11u, 90u, 99u, 100u, 995u}) {
    for (const uint64_t count : {1u, 2u, 3u, 9u, 10u, 11u, 95u, 120u, 1200u}) {
      ExpectLikeSortedTexts({first, count});
    }
  }
  ExpectLikeSortedTexts({kDecimalEnd - 300, 300});
  ExpectLikeSortedTexts({kDecimalEnd / 10 - 100, 200});
  constexpr uint32_t kSeed = 5;
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 100; ++i) {
    const uint64_t first = random() % (uint64_t{1} << (random() % 40));
    ExpectLikeSortedTexts({first, 1 + random() % 300});
  }
}

TEST(DecimalRangeTest, IsItsOwnInverseWhereLarge) {
  const DecimalRange range = {17, kDecimalEnd - 17};
  std::mt19937_64 random(6);
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t index = random() % range.count;
    EXPECT_EQ(range.CountBelow(absl::StrCat(range.NumberAt(index))), index);
  }
}

TEST(DecimalRangeTest, ParsesNumbersWithoutLeadingZeros) {
  EXPECT_EQ(ParseDecimal("0"), 0);
  EXPECT_EQ(ParseDecimal("907"), 907);
  EXPECT_EQ(ParseDecimal("999999999999999999"), kDecimalEnd - 1);
  for (const char* text : {"", "00", "01", "1000000000000000000", "1 ", "-1",
                           "+1", "1a", "a", "/", ":"}) {
    EXPECT_EQ(ParseDecimal(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace quire
