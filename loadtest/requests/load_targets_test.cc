// SPDX-License-Identifier: Apache-2.0
#include "loadtest/requests/load_targets.h"

#include <set>

#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr uint64_t kTargetsSize = 10'000'000;
constexpr uint64_t kDocumentCount = 5000;

LoadTargets Make(const LoadOptions& options) {
  return {options, nullptr, kTargetsSize, kDocumentCount};
}

TEST(LoadTargetsTest, RangesLieAnywhereInTheText) {
  LoadOptions options;
  options.range_size_bytes = 1000;
  const LoadTargets targets = Make(options);
  uint64_t upper_half = 0;
  uint64_t same = 0;
  options.seed = 2;
  for (uint64_t i = 0; i < 10'000; ++i) {
    const LoadTarget target = targets.At(i);
    ASSERT_FALSE(target.is_document());
    ASSERT_TRUE(target.place.has_value());
    ASSERT_EQ(target.place->size_bytes, 1000u);
    ASSERT_LE(target.place->offset + 1000, kTargetsSize);
    upper_half += target.place->offset > kTargetsSize / 2 ? 1 : 0;
    EXPECT_EQ(targets.At(i).place->offset, target.place->offset);
    same += Make(options).At(i).place->offset == target.place->offset ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(upper_half), 5000, 300);
  EXPECT_LT(same, 10u);
  EXPECT_EQ(targets.MeanSizeBytes(), 1000u);
}

TEST(LoadTargetsTest, ARangeMayBeTheWholeText) {
  LoadOptions options;
  options.range_size_bytes = kTargetsSize;
  const LoadTarget target = Make(options).At(3);
  EXPECT_EQ(target.place->offset, 0u);
  EXPECT_EQ(target.place->size_bytes, kTargetsSize);
}

TEST(LoadTargetsTest, DocumentsAreAskedForByNumberWithoutASource) {
  LoadOptions options;
  options.what = LoadKind::kDocuments;
  const LoadTargets targets = Make(options);
  std::set<uint64_t> seen;
  for (uint64_t i = 0; i < 100'000; ++i) {
    const LoadTarget target = targets.At(i);
    ASSERT_TRUE(target.ordinal.has_value());
    ASSERT_LT(*target.ordinal, kDocumentCount);
    ASSERT_FALSE(target.place.has_value());
    seen.insert(*target.ordinal);
  }
  EXPECT_EQ(seen.size(), kDocumentCount);
  EXPECT_EQ(targets.MeanSizeBytes(), kTargetsSize / kDocumentCount);
}

TEST(LoadTargetsTest, AreDescribedForPeople) {
  EXPECT_EQ(DescribeTarget({.place = TextSpan{17, 4}}), "range [17, +4)");
  EXPECT_EQ(DescribeTarget({.place = TextSpan{17, 4}, .id = "a"}),
            "document 'a' at [17, +4)");
  EXPECT_EQ(DescribeTarget({.ordinal = 3}), "document number 3");
}

}  // namespace
}  // namespace quire
