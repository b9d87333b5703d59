// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/memory/huge_pages.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace quire {
namespace {

std::vector<uint8_t> PageContent(size_t size_bytes) {
  std::vector<uint8_t> content(size_bytes);
  for (size_t i = 0; i < size_bytes; ++i) {
    content[i] = static_cast<uint8_t>(i * 2654435761 >> 13);
  }
  return content;
}

// For any kernel and alignment.
TEST(HugePagesTest, LeavesTheContentsAsTheyAre) {
  const std::vector<uint8_t> expected = PageContent((size_t{9} << 20) + 12'345);
  std::vector<uint8_t> bytes = expected;
  for (const size_t start : {size_t{0}, size_t{1}, size_t{4096}}) {
    PreferHugePages(ByteView(bytes).subspan(start));
    EXPECT_TRUE(bytes == expected);
  }
  bytes[5'000'000] ^= 1;
  EXPECT_NE(bytes[5'000'000], expected[5'000'000]);
}

TEST(HugePagesTest, TakesWhatHoldsNoHugePage) {
  std::vector<uint8_t> bytes = PageContent(4096);
  PreferHugePages(bytes);
  PreferHugePages({});
  EXPECT_TRUE(bytes == PageContent(4096));
}

}  // namespace
}  // namespace quire
