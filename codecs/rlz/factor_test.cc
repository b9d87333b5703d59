// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/factor.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/bytes.h"
#include "codecs/rlz/suffix_index.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

using ::testing::ElementsAre;

TEST(FactoriserTest, CutsLongestMatchesAndLiterals) {
  const std::string dictionary = "the cat sat on the mat";
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto index,
                             SuffixIndex::Build(AsBytes(dictionary)));
  FactorList factors;
  FactoriseGreedily(*index, AsBytes("a cat sat on #the cat"), factors);
  // "a", " cat sat on ", the literal "#", "the cat". The first in order of the
  // suffixes that begin with "a" is the last two bytes, "at".
  EXPECT_THAT(factors.lengths, ElementsAre(1, 12, 0, 7));
  EXPECT_THAT(factors.offsets, ElementsAre(20, 3, '#', 0));
}

TEST(FactoriserTest, EveryFactorIsTheLongestAndTheirTextIsTheBlock) {
  const uint64_t seed = 3;
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  TestRandom random(seed);
  for (int round = 0; round < 20; ++round) {
    const std::string dictionary = RandomText(random, 3000, 60);
    const std::string block = EditedPieces(random, dictionary, 4000);
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto index,
                               SuffixIndex::Build(AsBytes(dictionary)));
    FactorList factors;
    FactoriseGreedily(*index, AsBytes(block), factors);
    ASSERT_EQ(factors.offsets.size(), factors.lengths.size());
    size_t at = 0;
    for (size_t i = 0; i < factors.size(); ++i) {
      const size_t length = TextSizeOf(factors.lengths[i]);
      ASSERT_LE(at + length, block.size());
      if (factors.lengths[i] != 0) {
        ASSERT_EQ(
            dictionary.compare(factors.offsets[i], length, block, at, length),
            0);
      } else {
        ASSERT_EQ(factors.offsets[i], static_cast<uint8_t>(block[at]));
      }
      // Neither the match and one more byte, nor the literal itself, may occur.
      if (at + length < block.size() || factors.lengths[i] == 0) {
        const size_t longer = factors.lengths[i] == 0 ? 1 : length + 1;
        ASSERT_EQ(dictionary.find(block.substr(at, longer)), std::string::npos);
      }
      at += length;
    }
    ASSERT_EQ(at, block.size());
  }
}

}  // namespace
}  // namespace quire
