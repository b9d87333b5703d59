// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/format/segment_format.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/archive/format/archive_format.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kNumber = 3;

// Two sections, unknown and ignorable, behind no blocks.
SegmentFooter MakeFooter() {
  SegmentFooter footer;
  footer.blocks_end = kSegmentHeaderSizeBytes;
  uint64_t offset = footer.blocks_end;
  for (const uint32_t type : {100u, 101u}) {
    footer.sections.push_back({.type = type | kSectionIgnorableBit,
                               .offset = offset,
                               .stored_size_bytes = 10,
                               .size_bytes = 10});
    offset += 10;
  }
  return footer;
}

// Parses the encoded footer behind `table_offset` bytes.
absl::Status Parse(SegmentFooter footer, uint64_t table_offset) {
  const std::string bytes = EncodeSegmentFooter(footer, kNumber);
  return ParseSegmentFooter(AsBytes(bytes), table_offset + bytes.size(),
                            kNumber)
      .status();
}

TEST(SegmentFormatTest, SectionsTileTheFileUpToTheirTable) {
  constexpr uint64_t kEnd = kSegmentHeaderSizeBytes + 20;
  QUIRE_EXPECT_OK(Parse(MakeFooter(), kEnd));
  EXPECT_THAT(Parse(MakeFooter(), kEnd + 1),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("the section table begins at")));
  EXPECT_THAT(Parse(MakeFooter(), kEnd - 1),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("expected")));
  SegmentFooter apart = MakeFooter();
  ++apart.sections[1].offset;
  EXPECT_THAT(Parse(apart, kEnd + 1), FailsWith(absl::StatusCode::kDataLoss,
                                                HasSubstr("lies at byte")));
  SegmentFooter twice = MakeFooter();
  twice.sections[1].type = twice.sections[0].type;
  EXPECT_THAT(Parse(twice, kEnd), FailsWith(absl::StatusCode::kDataLoss,
                                            HasSubstr("comes after one")));
}

}  // namespace
}  // namespace quire
