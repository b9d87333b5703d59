// SPDX-License-Identifier: Apache-2.0
#include "codecs/reorder/content_chunker.h"

#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/checksum.h"
#include "testing/base/noise.h"

namespace quire {
namespace {

std::vector<size_t> SizesOf(const ContentChunker& chunker, ByteView text) {
  std::vector<size_t> sizes;
  while (!text.empty()) {
    const size_t size = chunker.Next(text);
    sizes.push_back(size);
    text = text.subspan(size);
  }
  return sizes;
}

TEST(ContentChunkerTest, SizesLieWithinTheirBoundsAndNearTheAverage) {
  const std::string text = Noise(4 << 20, 1);
  for (const uint32_t average : {1024u, 2048u, 8192u, 32768u}) {
    SCOPED_TRACE(average);
    const ContentChunker chunker(average);
    const std::vector<size_t> sizes = SizesOf(chunker, AsBytes(text));
    size_t sum = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_LE(sizes[i], chunker.size_bytes_max());
      if (i + 1 < sizes.size()) {
        EXPECT_GE(sizes[i], chunker.size_bytes_min());
      }
      sum += sizes[i];
    }
    EXPECT_EQ(sum, text.size());
    EXPECT_GT(sum / sizes.size(), average / 2);
    EXPECT_LT(sum / sizes.size(), average * 2);
  }
}

// Required for finding duplicates of text after an insertion.
TEST(ContentChunkerTest, ChunksAreTheSameBehindAnInsertion) {
  const std::string text = Noise(1 << 20, 2);
  const std::string longer = "inserted" + text;
  const ContentChunker chunker(2048);
  std::set<uint64_t> chunks;
  ByteView rest = AsBytes(text);
  for (const size_t size : SizesOf(chunker, rest)) {
    chunks.insert(Checksum64(rest.first(size)));
    rest = rest.subspan(size);
  }
  rest = AsBytes(longer);
  const std::vector<size_t> sizes = SizesOf(chunker, rest);
  size_t found = 0;
  for (const size_t size : sizes) {
    found += chunks.count(Checksum64(rest.first(size)));
    rest = rest.subspan(size);
  }
  EXPECT_GE(found + 8, sizes.size());
}

TEST(ContentChunkerTest, TextOfOneByteValueMakesChunksOfOneSize) {
  const std::string text(1 << 20, '\0');
  const ContentChunker chunker(2048);
  std::vector<size_t> sizes = SizesOf(chunker, AsBytes(text));
  sizes.pop_back();
  EXPECT_THAT(sizes, testing::Each(sizes.front()));
}

TEST(ContentChunkerTest, ShortTextsAreOneChunk) {
  const ContentChunker chunker(2048);
  for (const size_t size : {1u, 2u, 511u, 512u}) {
    EXPECT_EQ(chunker.Next(AsBytes(std::string(size, 'x'))), size);
  }
}

// Archives depend on it: a change alters what builds write.
TEST(ContentChunkerTest, DividesAsItAlwaysDid) {
  const std::string text = Noise(32 << 10, 3);
  const std::vector<size_t> sizes =
      SizesOf(ContentChunker(2048), AsBytes(text));
  const std::vector<size_t> first(sizes.begin(), sizes.begin() + 5);
  EXPECT_THAT(first, testing::ElementsAre(2132, 1664, 2189, 4255, 2361));
}

}  // namespace
}  // namespace quire
