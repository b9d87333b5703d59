// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/uniform_dictionary.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

// Text in which every four bytes contain their offset, so that a dictionary
// shows where it was taken from.
std::string NumberedText(size_t size) {
  std::string text;
  for (uint32_t i = 0; text.size() < size; ++i) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      text.push_back(static_cast<char>(i >> shift));
    }
  }
  text.resize(size);
  return text;
}

// Feeds `text` in pieces of random sizes up to `piece_max`, which is not 0.
absl::StatusOr<std::string> BuildUniformly(uint64_t dictionary_size,
                                           uint64_t sample_size,
                                           const std::string& text,
                                           TestRandom& random,
                                           size_t piece_max) {
  auto builder =
      MakeUniformDictionaryBuilder({.dictionary_size_bytes = dictionary_size,
                                    .sample_size_bytes = sample_size},
                                   text.size());
  if (!builder.ok()) {
    return builder.status();
  }
  EXPECT_EQ((*builder)->pass_count(), 1);
  EXPECT_GE((*builder)->MemoryBytesMax(),
            std::min<uint64_t>(dictionary_size, text.size()));
  ByteView left = AsBytes(text);
  while (!left.empty()) {
    const size_t size =
        std::min(left.size(), RandomBelow(random, piece_max + 1));
    EXPECT_THAT((*builder)->Add(left.first(size)), IsOk());
    left = left.subspan(size);
  }
  EXPECT_THAT((*builder)->FinishPass(), IsOk());
  return (*builder)->Take();
}

TEST(UniformDictionaryTest, TakesThePapersPositionsWhereSizesDivide) {
  TestRandom random(1);
  const std::string text = NumberedText(64000);
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::string dictionary,
                             BuildUniformly(4000, 100, text, random, 999));
  std::string expected;
  for (size_t i = 0; i < 40; ++i) {
    expected += text.substr(i * 64000 / 40, 100);
  }
  EXPECT_EQ(dictionary, expected);
}

TEST(UniformDictionaryTest, SamplesAreInOrderApartAndEvenlySpread) {
  const uint64_t seed = 7;
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  TestRandom random(seed);
  for (int round = 0; round < 400; ++round) {
    const std::string text = NumberedText(1 + RandomBelow(random, 3000));
    const size_t wanted = RandomBelow(random, 4000);
    const size_t sample = 1 + RandomBelow(random, 300);
    SCOPED_TRACE(absl::StrCat(text.size(), " bytes, dictionary ", wanted,
                              ", samples ", sample));
    QUIRE_ASSERT_OK_AND_ASSIGN(const std::string dictionary,
                               BuildUniformly(wanted, sample, text, random,
                                              1 + static_cast<size_t>(round)));
    const size_t size = std::min(wanted, text.size());
    ASSERT_EQ(dictionary.size(), size);
    const size_t count = (size + sample - 1) / sample;
    size_t end = 0;
    for (size_t i = 0; i < count; ++i) {
      const size_t length = std::min(sample, size - i * sample);
      // Searched from the end of the preceding sample: samples never overlap.
      const size_t start = i * sample + (text.size() - size) * i / count;
      ASSERT_GE(start, end);
      end = start + length;
      ASSERT_LE(end, text.size());
      ASSERT_EQ(dictionary.substr(i * sample, length),
                text.substr(start, length))
          << i;
    }
    // The text after the last sample is a share like the others.
    if (count > 0) {
      EXPECT_LE(text.size() - end, (text.size() - size) / count + 1);
    }
  }
}

TEST(UniformDictionaryTest, OfASmallTextIsTheText) {
  TestRandom random(1);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1023}, size_t{1024},
                            size_t{1025}, size_t{5000}}) {
    const std::string text = NumberedText(size);
    for (const uint64_t wanted : {uint64_t{5000}, kDictionarySizeBytesMax}) {
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const std::string dictionary,
          BuildUniformly(wanted, 1024, text, random, 100));
      EXPECT_EQ(dictionary, text);
    }
  }
}

TEST(UniformDictionaryTest, MayBeEmptyOrOneSample) {
  TestRandom random(1);
  const std::string text = NumberedText(1000);
  EXPECT_EQ(BuildUniformly(0, 1024, text, random, 99).value_or("x"), "");
  EXPECT_EQ(BuildUniformly(10, 1024, text, random, 99).value_or(""),
            text.substr(0, 10));
  EXPECT_EQ(BuildUniformly(10, UINT64_MAX, text, random, 99).value_or(""),
            text.substr(0, 10));
}

TEST(UniformDictionaryTest, NoticesATextThatChanged) {
  const auto make = [] {
    return MakeUniformDictionaryBuilder({.dictionary_size_bytes = 10}, 100);
  };
  const std::string text(101, 'x');
  auto longer = make();
  ASSERT_THAT(longer, IsOk());
  EXPECT_THAT((*longer)->Add(AsBytes(text)),
              HasCode(absl::StatusCode::kFailedPrecondition));
  auto shorter = make();
  ASSERT_THAT(shorter, IsOk());
  EXPECT_THAT((*shorter)->Add(AsBytes(text).first(99)), IsOk());
  EXPECT_THAT((*shorter)->FinishPass(),
              HasCode(absl::StatusCode::kFailedPrecondition));
}

TEST(UniformDictionaryTest, RefusesSizesThatCannotBe) {
  EXPECT_THAT(MakeUniformDictionaryBuilder(
                  {.dictionary_size_bytes = kDictionarySizeBytesMax + 1}, 100),
              HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(MakeUniformDictionaryBuilder({.sample_size_bytes = 0}, 100),
              HasCode(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace quire
