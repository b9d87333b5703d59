// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/parse/sparse_search.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

std::vector<uint32_t> LookUp(const DictionaryIndex& index,
                             const std::string& block, uint32_t position) {
  if (position + DictionaryIndex::kLongestKeySize > block.size()) {
    return {};
  }
  std::array<uint32_t, DictionaryIndex::kWays> places = {};
  const size_t count = index.FindLongest(
      DictionaryIndex::HashLongest(AsBytes(block).data() + position),
      places.data());
  return {places.begin(), places.begin() + static_cast<ptrdiff_t>(count)};
}

// Fetches ahead must be for the right positions, also after a jump, without
// reading past the block.
TEST(SparseSearchTest, GivesWhatTheIndexHas) {
  TestRandom random(1);
  const std::string dictionary = RandomBytes(random, 20000);
  const std::string block = dictionary.substr(4001, 3000);
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto index,
                             DictionaryIndex::Build(AsBytes(dictionary)));
  const BlockText text(AsBytes(dictionary), AsBytes(block));
  for (const uint32_t stride : {1u, 5u, 9u, 100u}) {
    SparseSearch search(*index, text, stride);
    size_t found = 0;
    for (uint32_t begin = 7; begin < block.size(); begin += 700) {
      const auto end =
          std::min(static_cast<uint32_t>(block.size()), begin + 600);
      for (uint32_t position = begin; position < end; position += stride) {
        const auto places = search.Candidates(position, position + 50);
        const auto expected = LookUp(*index, block, position);
        ASSERT_TRUE(std::ranges::equal(places, expected)) << position;
        found += places.size();
      }
    }
    EXPECT_GT(found, 0u);
  }
}

TEST(SparseSearchTest, FindsNothingWithoutDictionaryOrKey) {
  const std::string block(100, 'x');
  for (const std::string& dictionary : {std::string(), std::string(100, 'x')}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto index,
                               DictionaryIndex::Build(AsBytes(dictionary)));
    const BlockText text(AsBytes(dictionary), AsBytes(block));
    SparseSearch search(*index, text, 3);
    EXPECT_EQ(search.Candidates(0, 0).empty(), dictionary.empty());
    EXPECT_TRUE(search.Candidates(60, 60).empty());
  }
}

}  // namespace
}  // namespace quire
