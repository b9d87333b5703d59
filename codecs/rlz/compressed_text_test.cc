// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/compressed_text.h"

#include <zlib.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "codecs/codec_test_inputs.h"

namespace quire {
namespace {

std::string Deflated(const std::string& text, int level) {
  uLongf size = compressBound(text.size());
  std::string stored(size, '\0');
  EXPECT_EQ(compress2(reinterpret_cast<Bytef*>(stored.data()), &size,
                      reinterpret_cast<const Bytef*>(text.data()), text.size(),
                      level),
            Z_OK);
  stored.resize(size);
  return stored;
}

// How many of `text`'s pieces of `size` look compressed, in percent.
size_t PercentCompressed(const std::string& text, size_t size) {
  size_t found = 0;
  size_t count = 0;
  for (size_t from = 0; from + size <= text.size(); from += size) {
    ++count;
    found += LooksCompressed(AsBytes(text).subspan(from, size)) ? 1 : 0;
  }
  EXPECT_GT(count, 10);
  return found * 100 / count;
}

const std::vector<size_t>& PieceSizes() {
  static const auto* const sizes =
      new std::vector<size_t>{256, 300, 512, 1024, 2047, 4096, 16384};
  return *sizes;
}

TEST(CompressedTextTest, FindsRandomBytes) {
  TestRandom random(1);
  const std::string bytes = RandomBytes(random, 2 << 20);
  for (const size_t size : PieceSizes()) {
    EXPECT_EQ(PercentCompressed(bytes, size), 100) << size;
  }
}

TEST(CompressedTextTest, FindsWhatZlibLeft) {
  TestRandom random(2);
  const std::string text = RandomText(random, 4 << 20);
  for (const int level : {1, 6, 9}) {
    const std::string stored = Deflated(text, level);
    for (const size_t size : PieceSizes()) {
      EXPECT_GE(PercentCompressed(stored, size), 99) << level << " " << size;
    }
  }
}

TEST(CompressedTextTest, LeavesTextAlone) {
  TestRandom random(3);
  const std::string text = RandomText(random, 1 << 20);
  for (const size_t size : PieceSizes()) {
    EXPECT_EQ(PercentCompressed(text, size), 0) << size;
  }
}

TEST(CompressedTextTest, LeavesBase64Alone) {
  TestRandom random(4);
  const std::string text = absl::Base64Escape(RandomBytes(random, 1 << 20));
  for (const size_t size : PieceSizes()) {
    EXPECT_EQ(PercentCompressed(text, size), 0) << size;
  }
}

// Ideographs drawn evenly from 20,992: the flattest bytes that text can have.
TEST(CompressedTextTest, LeavesUtf8Alone) {
  TestRandom random(5);
  std::string text;
  while (text.size() < 1 << 20) {
    const size_t point = 0x4E00 + RandomBelow(random, 0x5200);
    text.push_back(static_cast<char>(0xE0 | point >> 12));
    text.push_back(static_cast<char>(0x80 | (point >> 6 & 0x3F)));
    text.push_back(static_cast<char>(0x80 | (point & 0x3F)));
  }
  for (const size_t size : PieceSizes()) {
    EXPECT_EQ(PercentCompressed(text, size), 0) << size;
  }
}

// A third of machine code or of tables of numbers may be arbitrary.
TEST(CompressedTextTest, LeavesBinariesAlone) {
  TestRandom random(6);
  std::string numbers;
  while (numbers.size() < 1 << 20) {
    numbers += RandomBytes(random, 3);
    numbers.push_back('\0');
  }
  for (const size_t size : PieceSizes()) {
    EXPECT_EQ(PercentCompressed(numbers, size), 0) << size;
  }
}

TEST(CompressedTextTest, LeavesTablesOfAllValuesAlone) {
  std::string table;
  while (table.size() < 1 << 20) {
    table.push_back(static_cast<char>(table.size() * 7));
  }
  for (const size_t size : PieceSizes()) {
    EXPECT_EQ(PercentCompressed(table, size), 0) << size;
  }
}

TEST(CompressedTextTest, KnowsNothingOfShortPieces) {
  TestRandom random(7);
  const std::string bytes = RandomBytes(random, kCompressedTextSizeBytesMin);
  EXPECT_TRUE(LooksCompressed(AsBytes(bytes)));
  EXPECT_FALSE(LooksCompressed(AsBytes(bytes).first(bytes.size() - 1)));
  EXPECT_FALSE(LooksCompressed({}));
}

TEST(CompressedTextTest, DoesNotDependOnOrder) {
  TestRandom random(8);
  std::string bytes = RandomBytes(random, 4096);
  std::sort(bytes.begin(), bytes.end());
  EXPECT_TRUE(LooksCompressed(AsBytes(bytes)));
}

TEST(CompressedTextTest, TakesTheLargestPiece) {
  const std::string zeros(size_t{16} << 20, '\0');
  EXPECT_FALSE(LooksCompressed(AsBytes(zeros)));
}

}  // namespace
}  // namespace quire
