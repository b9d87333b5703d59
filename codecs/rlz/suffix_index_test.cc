// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/suffix_index.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "codecs/base/bytes.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

constexpr uint64_t kSeed = 11;

// By definition: the longest prefix that occurs, at the suffix that sorts
// first.
std::pair<size_t, size_t> SlowLongestMatch(const std::string& text,
                                           const std::string& pattern) {
  for (size_t length = pattern.size(); length > 0; --length) {
    const std::string prefix = pattern.substr(0, length);
    size_t best = std::string::npos;
    for (size_t at = text.find(prefix); at != std::string::npos;
         at = text.find(prefix, at + 1)) {
      if (best == std::string::npos ||
          text.compare(at, std::string::npos, text, best) < 0) {
        best = at;
      }
    }
    if (best != std::string::npos) {
      return {best, length};
    }
  }
  return {0, 0};
}

void ExpectRightMatch(const SuffixIndex& index, const std::string& text,
                      const std::string& pattern) {
  const SuffixIndex::Match match = index.LongestMatch(AsBytes(pattern));
  const auto [offset, length] = SlowLongestMatch(text, pattern);
  ASSERT_EQ(match.length, length);
  ASSERT_EQ(match.offset, offset);
}

// Texts over a few letters have many long and equally long matches; these
// letters are prone to errors of signs, ends and zeros.
TEST(SuffixIndexTest, FindsTheLongestMatch) {
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  TestRandom random(kSeed);
  for (const std::string& letters :
       {std::string("\0", 1), std::string("\xFF"), std::string("\0\xFF", 2),
        std::string("\0\x01\x7F\x80\xFF", 5), std::string("abcdefgh")}) {
    const auto draw = [&](size_t size) {
      std::string drawn(size, '\0');
      for (char& letter : drawn) {
        letter = letters[RandomBelow(random, letters.size())];
      }
      return drawn;
    };
    for (int round = 0; round < 60; ++round) {
      const std::string text = draw(RandomBelow(random, 250));
      SCOPED_TRACE(absl::StrCat(letters.size(), " letters, round ", round));
      QUIRE_ASSERT_OK_AND_ASSIGN(const auto index,
                                 SuffixIndex::Build(AsBytes(text)));
      for (int i = 0; i < 20; ++i) {
        ExpectRightMatch(*index, text, draw(RandomBelow(random, 30)));
        if (!text.empty()) {
          const size_t at = RandomBelow(random, text.size());
          ExpectRightMatch(*index, text,
                           text.substr(at, RandomBelow(random, 40)) + draw(3));
        }
      }
    }
  }
}

TEST(SuffixIndexTest, FindsAllPrefixesOfAllSuffixes) {
  TestRandom random(kSeed);
  const std::string text = RandomText(random, 300, 6) + "\xFF\xFF" +
                           std::string(3, '\0') + RandomText(random, 300, 6);
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto index,
                             SuffixIndex::Build(AsBytes(text)));
  for (size_t at = 0; at < text.size(); ++at) {
    for (const size_t size : {size_t{1}, size_t{2}, size_t{8}, text.size()}) {
      ExpectRightMatch(*index, text, text.substr(at, size));
      ExpectRightMatch(*index, text, text.substr(at, size) + "#");
    }
  }
}

TEST(SuffixIndexTest, HandlesTheSuffixOfOneByte) {
  // Its bucket is that of the byte and 00, where it does not belong.
  for (const std::string& text :
       {std::string("a"), std::string("ba"), std::string("a\0ba", 4),
        std::string("\0", 1), std::string("\0\0", 2), std::string("\xFF")}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto index,
                               SuffixIndex::Build(AsBytes(text)));
    for (const std::string& pattern :
         {std::string("a"), std::string("a\0", 2), std::string("a\0b", 3),
          std::string("a\x01"), std::string("\0", 1), std::string("\0\0", 2),
          std::string("\0\0\0", 3), std::string("\xFF\0", 2),
          std::string("\xFF\xFF"), std::string("q")}) {
      ExpectRightMatch(*index, text, pattern);
    }
  }
}

TEST(SuffixIndexTest, OfNothingFindsNothing) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto index, SuffixIndex::Build({}));
  EXPECT_EQ(index->LongestMatch(AsBytes("abc")).length, 0u);
  EXPECT_EQ(index->LongestMatch(AsBytes(absl::string_view("\0\0", 2))).length,
            0u);
  EXPECT_EQ(index->LongestMatch({}).length, 0u);
}

TEST(SuffixIndexTest, RefusesATextThatIsTooLarge) {
  // Only the size is used; nothing is read.
  const uint8_t byte = 0;
  const ByteView text(&byte, size_t{1} << 31);
  EXPECT_THAT(SuffixIndex::Build(text),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        ::testing::HasSubstr("2147483647")));
}

TEST(SuffixIndexTest, StatesItsMemory) {
  const std::string text(1 << 20, 'x');
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto index,
                             SuffixIndex::Build(AsBytes(text)));
  EXPECT_GE(index->MemoryBytes(), text.size() * 5);
  EXPECT_LE(index->MemoryBytes(), text.size() * 6);
}

}  // namespace
}  // namespace quire
