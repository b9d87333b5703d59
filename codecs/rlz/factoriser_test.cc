// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/factoriser.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/bytes.h"
#include "codecs/base/status_matchers.h"
#include "codecs/codec_test_inputs.h"
#include "codecs/rlz/factor_copy.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

FactorList MakeFactors(
    std::initializer_list<std::pair<uint32_t, uint32_t>> pairs) {
  FactorList factors;
  for (const auto& [offset, length] : pairs) {
    factors.Add(offset, length);
  }
  return factors;
}

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
      }
      // One byte more, or the literal itself, must not occur.
      if (at + length < block.size() || factors.lengths[i] == 0) {
        const size_t longer = factors.lengths[i] == 0 ? 1 : length + 1;
        ASSERT_EQ(dictionary.find(block.substr(at, longer)), std::string::npos);
      }
      at += length;
    }
    ASSERT_EQ(at, block.size());
    std::string back(block.size(), '\0');
    QUIRE_ASSERT_OK(
        CopyFactors(AsBytes(dictionary), factors, 0, AsMutableBytes(back)));
    ASSERT_EQ(back, block);
  }
}

TEST(FactorCopyTest, CopiesAnyRange) {
  const std::string dictionary = "0123456789abcdefghijklmnopqrstuvwxyz";
  const FactorList factors = MakeFactors(
      {{10, 3}, {'#', 0}, {0, 36}, {0, 0}, {35, 1}, {0, 17}, {255, 0}});
  const std::string text = "abc#" + dictionary + std::string(1, '\0') + "z" +
                           dictionary.substr(0, 17) + "\xFF";
  for (size_t skip = 0; skip <= text.size(); ++skip) {
    for (size_t size = 0; size <= text.size() - skip; ++size) {
      std::string out(size, '?');
      QUIRE_ASSERT_OK(
          CopyFactors(AsBytes(dictionary), factors, skip, AsMutableBytes(out)));
      ASSERT_EQ(out, text.substr(skip, size)) << skip << " " << size;
    }
  }
}

TEST(FactorCopyTest, RefusesWhatIsNotInTheDictionary) {
  const std::string dictionary(40, 'x');
  std::string out(100, '?');
  for (const auto& [offset, length] : {std::pair<uint32_t, uint32_t>{0, 41},
                                       {40, 1},
                                       {39, 2},
                                       {UINT32_MAX, 1},
                                       {UINT32_MAX, 40},
                                       {1, 40},
                                       {41, 60}}) {
    EXPECT_THAT(
        CopyFactors(AsBytes(dictionary), MakeFactors({{offset, length}}), 0,
                    AsMutableBytes(out).first(length)),
        FailsWith(absl::StatusCode::kDataLoss, HasSubstr("of a dictionary")));
  }
  EXPECT_THAT(CopyFactors(AsBytes(dictionary), MakeFactors({{256, 0}}), 0,
                          AsMutableBytes(out).first(1)),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("literal")));
}

}  // namespace
}  // namespace quire
