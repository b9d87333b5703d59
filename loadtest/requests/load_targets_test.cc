// SPDX-License-Identifier: Apache-2.0
#include "loadtest/requests/load_targets.h"

#include <map>
#include <set>

#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr uint64_t kTargetsSize = 10'000'000;
constexpr uint64_t kDocumentCount = 5000;

LoadTargets Make(const LoadOptions& options) {
  return {options, nullptr, kTargetsSize, kDocumentCount};
}

TEST(LoadTargetsTest, UniformRangesLieInTheTextAndDifferInSize) {
  LoadOptions options;
  options.range_size_bytes_min = 1;
  options.range_size_bytes_max = 1000;
  const LoadTargets targets = Make(options);
  std::set<uint64_t> sizes;
  uint64_t upper_half = 0;
  for (uint64_t i = 0; i < 10'000; ++i) {
    const LoadTarget target = targets.At(i);
    ASSERT_FALSE(target.is_document());
    ASSERT_TRUE(target.place.has_value());
    ASSERT_GE(target.place->size_bytes, 1u);
    ASSERT_LE(target.place->size_bytes, 1000u);
    ASSERT_LE(target.place->offset + target.place->size_bytes, kTargetsSize);
    sizes.insert(target.place->size_bytes);
    upper_half += target.place->offset > kTargetsSize / 2 ? 1 : 0;
    EXPECT_EQ(targets.At(i).place->offset, target.place->offset);
  }
  EXPECT_EQ(sizes.size(), 1000u);
  EXPECT_NEAR(static_cast<double>(upper_half), 5000, 300);
  EXPECT_EQ(targets.MeanSizeBytes(), 500u);
}

TEST(LoadTargetsTest, ARangeMayBeTheWholeText) {
  LoadOptions options;
  options.range_size_bytes_min = options.range_size_bytes_max = kTargetsSize;
  for (const LoadDistribution distribution :
       {LoadDistribution::kUniform, LoadDistribution::kZipf}) {
    options.distribution = distribution;
    const LoadTarget target = Make(options).At(3);
    EXPECT_EQ(target.place->offset, 0u);
    EXPECT_EQ(target.place->size_bytes, kTargetsSize);
  }
}

TEST(LoadTargetsTest, ZipfAsksForTheSameFewRangesMostOfTheTime) {
  LoadOptions options;
  options.distribution = LoadDistribution::kZipf;
  options.range_size_bytes_min = 100;
  options.range_size_bytes_max = 1000;
  const LoadTargets targets = Make(options);
  std::map<uint64_t, std::set<uint64_t>> sizes_at;
  std::map<uint64_t, uint64_t> count_at;
  for (uint64_t i = 0; i < 20'000; ++i) {
    const TextSpan place = *targets.At(i).place;
    ASSERT_LE(place.offset + place.size_bytes, kTargetsSize);
    sizes_at[place.offset].insert(place.size_bytes);
    ++count_at[place.offset];
  }
  uint64_t most = 0;
  uint64_t hottest = 0;
  for (const auto& [offset, count] : count_at) {
    hottest = count > most ? offset : hottest;
    most = std::max(most, count);
    // A repeated item has the same bytes.
    EXPECT_EQ(sizes_at[offset].size(), 1u);
  }
  // Rank 1 of 10,000 at exponent 0.99 has a tenth of all.
  EXPECT_NEAR(static_cast<double>(most), 2000, 300);
  EXPECT_GT(hottest, 0u);
  options.seed = 2;
  EXPECT_NE(Make(options).At(0).place->offset, targets.At(0).place->offset);
}

TEST(LoadTargetsTest, DocumentsAreAskedForByNumberWithoutASource) {
  LoadOptions options;
  options.what = LoadKind::kDocuments;
  for (const LoadDistribution distribution :
       {LoadDistribution::kUniform, LoadDistribution::kZipf}) {
    options.distribution = distribution;
    const LoadTargets targets = Make(options);
    for (uint64_t i = 0; i < 1000; ++i) {
      const LoadTarget target = targets.At(i);
      ASSERT_TRUE(target.ordinal.has_value());
      ASSERT_LT(*target.ordinal, kDocumentCount);
      ASSERT_FALSE(target.place.has_value());
    }
    EXPECT_EQ(targets.MeanSizeBytes(), kTargetsSize / kDocumentCount);
  }
}

TEST(LoadTargetsTest, AreDescribedForPeople) {
  EXPECT_EQ(DescribeTarget({.place = TextSpan{17, 4}}), "range [17, +4)");
  EXPECT_EQ(DescribeTarget({.place = TextSpan{17, 4}, .id = "a"}),
            "document 'a' at [17, +4)");
  EXPECT_EQ(DescribeTarget({.ordinal = 3}), "document number 3");
}

}  // namespace
}  // namespace quire
