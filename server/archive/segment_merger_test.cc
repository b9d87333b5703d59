// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/segment_merger.h"

#include <cstdint>
#include <span>
#include <vector>

#include "gmock/gmock.h"

#include "server/archive/format/manifest.h"

namespace quire {
namespace {

ManifestSegment SegmentOfSize(uint64_t size_bytes, uint64_t run_count = 1) {
  ManifestSegment segment;
  segment.size_bytes = size_bytes;
  segment.document_count = 1;
  segment.run_count = run_count;
  return segment;
}

TEST(SegmentMergerTest, ASegmentJoinsTheLaterOnesWhileItIsUnderTwiceThem) {
  const auto first = [](const std::vector<uint64_t>& sizes,
                        uint64_t size_bytes_max = uint64_t{1} << 40) {
    std::vector<ManifestSegment> segments;
    for (const uint64_t size : sizes) {
      segments.push_back(SegmentOfSize(size));
    }
    return FirstToJoin(segments, size_bytes_max, LayoutSegments::kStay);
  };
  EXPECT_EQ(first({}), 0u);
  EXPECT_EQ(first({100}), 0u);
  EXPECT_EQ(first({100, 100}), 0u);
  EXPECT_EQ(first({200, 100}), 0u);
  EXPECT_EQ(first({202, 100}), 1u);
  EXPECT_EQ(first({1000, 202, 100}), 2u);
  EXPECT_EQ(first({1000, 400, 200, 199, 100}), 0u);
  EXPECT_EQ(first({2000, 400, 200, 199, 100}), 1u);
  EXPECT_EQ(first({100, 100}, 200), 0u);
  EXPECT_EQ(first({100, 100}, 199), 1u);
  EXPECT_EQ(first({0, 0, 0}), 0u);
  const std::vector<ManifestSegment> with_layout = {
      SegmentOfSize(100), SegmentOfSize(100, 2), SegmentOfSize(100)};
  EXPECT_EQ(FirstToJoin(with_layout, 1000, LayoutSegments::kStay), 2u);
  EXPECT_EQ(
      FirstToJoin(std::span(with_layout).first(2), 1000, LayoutSegments::kStay),
      1u);
  EXPECT_EQ(FirstToJoin(with_layout, 1000, LayoutSegments::kJoin), 0u);
  EXPECT_EQ(FirstToJoin(with_layout, 299, LayoutSegments::kJoin), 1u);
}

}  // namespace
}  // namespace quire
