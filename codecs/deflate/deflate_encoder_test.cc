// SPDX-License-Identifier: Apache-2.0
#include "codecs/deflate/deflate_encoder.h"

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/sanitized.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/deflate_test_streams.h"

namespace quire {
namespace {

constexpr uint64_t kSeed = 19;
constexpr size_t kGzipHeaderSize = 10;
constexpr size_t kGzipTrailerSize = 8;
// Levels that are tested: all, or under sanitizers 1, 5 and 9.
constexpr int kLevelStep = kIsSanitized ? 4 : 1;

TEST(DeflateEncoderTest, MakesWhatZlibMakes) {
  TestRandom random(kSeed);
  DeflateEncoder encoder;
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{2}, size_t{3}, size_t{4}, size_t{10},
        size_t{261}, size_t{263}, size_t{5000}, size_t{65275}, size_t{65536},
        size_t{100000}}) {
    for (const TestInput& input : DeflateTexts(random, size)) {
      for (uint8_t level = 1; level <= 9;
           level = static_cast<uint8_t>(level + kLevelStep)) {
        for (const auto strategy :
             {DeflateStrategy::kDefault, DeflateStrategy::kFiltered,
              DeflateStrategy::kHuffmanOnly, DeflateStrategy::kRle,
              DeflateStrategy::kFixed}) {
          DeflateParameters parameters = RandomZlibParameters(random);
          parameters.level = level;
          parameters.strategy = strategy;
          ASSERT_TRUE(EncodedStream(encoder, parameters, input.text) ==
                      ZlibStream(parameters, input.text))
              << input.name << ", " << size << " bytes, "
              << DeflateParametersText(parameters);
        }
      }
    }
  }
}

// Number of texts; QUIRE_DEFLATE_TEXTS sets more than a normal test run allows.
int TextCount() {
  const char* const count = std::getenv("QUIRE_DEFLATE_TEXTS");
  return count == nullptr ? Fewer(2000) : std::atoi(count);
}

TEST(DeflateEncoderTest, MakesWhatZlibMakesOfManyTexts) {
  TestRandom random(kSeed);
  DeflateEncoder encoder;
  for (int i = 0; i < TextCount(); ++i) {
    const size_t size =
        RandomBelow(random, size_t{2} << RandomBelow(random, 15));
    const std::string text = MixedText(random, size);
    const DeflateParameters parameters = RandomZlibParameters(random);
    ASSERT_TRUE(EncodedStream(encoder, parameters, text) ==
                ZlibStream(parameters, text))
        << "text " << i << ", " << size << " bytes, "
        << DeflateParametersText(parameters);
  }
}

TEST(DeflateEncoderTest, MakesWhatZlibMakesOfLongTexts) {
  TestRandom random(kSeed);
  DeflateEncoder encoder;
  for (const TestInput& input : DeflateTexts(random, 1200000)) {
    for (const uint8_t level : {uint8_t{1}, uint8_t{6}, uint8_t{9}}) {
      for (const uint8_t memory_level : {uint8_t{8}, uint8_t{9}}) {
        const DeflateParameters parameters = {.level = level,
                                              .memory_level = memory_level};
        ASSERT_TRUE(EncodedStream(encoder, parameters, input.text) ==
                    ZlibStream(parameters, input.text))
            << input.name << ", " << DeflateParametersText(parameters);
      }
    }
  }
}

TEST(DeflateEncoderTest, MakesWhatGzipMakes) {
  TestRandom random(kSeed);
  DeflateEncoder encoder;
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{3}, size_t{300}, size_t{20000},
        size_t{65274}, size_t{65275}, size_t{65536}, size_t{70000},
        size_t{98042}, size_t{400000}}) {
    for (const TestInput& input : DeflateTexts(random, size)) {
      for (uint8_t level = 1; level <= 9;
           level = static_cast<uint8_t>(level + kLevelStep)) {
        const DeflateParameters parameters = {
            .encoder = DeflateEncoderId::kGzip, .level = level};
        const std::string made = GzipProgramStream(level, input.text);
        ASSERT_GE(made.size(), kGzipHeaderSize + kGzipTrailerSize);
        ASSERT_TRUE(EncodedStream(encoder, parameters, input.text) ==
                    made.substr(kGzipHeaderSize, made.size() - kGzipHeaderSize -
                                                     kGzipTrailerSize))
            << input.name << ", " << size << " bytes, "
            << DeflateParametersText(parameters);
      }
    }
  }
}

TEST(DeflateEncoderTest, MakesWhatGzipMakesOfManyTexts) {
  TestRandom random(kSeed);
  DeflateEncoder encoder;
  // Each iteration starts a program.
  for (int i = 0; i < TextCount() / 50; ++i) {
    const size_t size =
        RandomBelow(random, size_t{2} << RandomBelow(random, 18));
    const std::string text = MixedText(random, size);
    const DeflateParameters parameters = {
        .encoder = DeflateEncoderId::kGzip,
        .level = static_cast<uint8_t>(1 + RandomBelow(random, 9))};
    const std::string made = GzipProgramStream(parameters.level, text);
    ASSERT_TRUE(EncodedStream(encoder, parameters, text) ==
                made.substr(kGzipHeaderSize,
                            made.size() - kGzipHeaderSize - kGzipTrailerSize))
        << "text " << i << ", " << size << " bytes, "
        << DeflateParametersText(parameters);
  }
}

// Texts with long chains of three bytes, up to longer than any level follows:
// the search is then by four bytes.
TEST(DeflateEncoderTest, MakesWhatZlibAndGzipMakeOfLongChains) {
  TestRandom random(kSeed);
  DeflateEncoder encoder;
  std::vector<std::string> texts;
  for (const uint64_t letters : {2U, 3U, 12U}) {
    std::string text;
    while (text.size() < 80000) {
      text += static_cast<char>('a' + RandomBelow(random, letters));
      if (RandomBelow(random, 100) == 0) {
        text += text.substr(RandomBelow(random, text.size()),
                            RandomBelow(random, 300));
      }
    }
    texts.push_back(text);
  }
  // Lines that begin alike, followed by bytes without any match.
  std::string lines;
  while (lines.size() < 60000) {
    lines += "entry:" + std::to_string(RandomBelow(random, 100000)) + "\n";
  }
  texts.push_back(lines + RandomBytes(random, 70000) + lines);
  for (const std::string& text : texts) {
    for (const uint8_t level : {uint8_t{8}, uint8_t{9}}) {
      for (const uint8_t window_bits : {uint8_t{9}, uint8_t{15}}) {
        for (const uint8_t memory_level : {uint8_t{1}, uint8_t{8}}) {
          const DeflateParameters parameters = {.level = level,
                                                .memory_level = memory_level,
                                                .window_bits = window_bits};
          ASSERT_TRUE(EncodedStream(encoder, parameters, text) ==
                      ZlibStream(parameters, text))
              << text.substr(0, 20) << ", "
              << DeflateParametersText(parameters);
        }
      }
      const std::string made = GzipProgramStream(level, text);
      ASSERT_TRUE(
          EncodedStream(encoder,
                        {.encoder = DeflateEncoderId::kGzip, .level = level},
                        text) ==
          made.substr(kGzipHeaderSize,
                      made.size() - kGzipHeaderSize - kGzipTrailerSize));
    }
  }
  // About 12 steps per byte by three bytes, each of which has many positions,
  // and 6 by four.
  std::string numbers;
  while (numbers.size() < 60000) {
    numbers += std::to_string(RandomBelow(random, 1000000));
  }
  EncodedStream(encoder, {.level = 9}, numbers);
  EXPECT_LT(encoder.work(), 9 * numbers.size());
}

// Readers refuse members whose work exceeds a limit, so the count must not
// depend on the bytes that an earlier text left after this one.
TEST(DeflateEncoderTest, CountsTheSameWorkAfterAnyText) {
  // The last match begins one byte before a chain of 200 positions.
  std::string text = "-abcd";
  for (int i = 0; i < 200; ++i) {
    text += absl::StrCat("bcdef", i, ".");
  }
  text += "abcd";
  for (const DeflateEncoderId id :
       {DeflateEncoderId::kZlib, DeflateEncoderId::kGzip}) {
    const DeflateParameters parameters = {.encoder = id, .level = 9};
    DeflateEncoder fresh;
    const std::string stream = EncodedStream(fresh, parameters, text);
    DeflateEncoder used;
    EncodedStream(used, {.level = 9}, text + "ef");
    EXPECT_TRUE(EncodedStream(used, parameters, text) == stream);
    EXPECT_EQ(used.work(), fresh.work());
  }
}

TEST(DeflateEncoderTest, EndsWhereItIsTold) {
  TestRandom random(kSeed);
  const std::string text = RandomBytes(random, 300000);
  DeflateEncoder encoder;
  const std::string whole = EncodedStream(encoder, {}, text);
  const uint64_t work = encoder.work();
  EXPECT_GE(work, text.size());

  // A sink that stops early gets the front of the stream.
  std::string front;
  EXPECT_THAT(encoder.Encode({}, AsBytes(text),
                             [&](ByteView bytes) {
                               front.append(bytes.begin(), bytes.end());
                               return front.size() < 50000;
                             }),
              HasCode(absl::StatusCode::kCancelled));
  EXPECT_GE(front.size(), 50000);
  EXPECT_TRUE(whole.starts_with(front));
  EXPECT_LT(front.size(), whole.size());

  const auto all = [](ByteView) { return true; };
  int asked = 0;
  EXPECT_THAT(
      encoder.Encode({}, AsBytes(text), all,
                     {.cancelled = [&] { return ++asked == 3; }}),
      FailsWith(absl::StatusCode::kCancelled, ::testing::HasSubstr("caller")));
  EXPECT_EQ(asked, 3);
  EXPECT_THAT(
      encoder.Encode({}, AsBytes(text), all, {.work_max = text.size() / 2}),
      FailsWith(absl::StatusCode::kResourceExhausted,
                ::testing::HasSubstr("steps")));
  QUIRE_EXPECT_OK(encoder.Encode({}, AsBytes(text), all, {.work_max = work}));
  EXPECT_THAT(encoder.Encode({.level = 0}, AsBytes(text), all),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        ::testing::HasSubstr("parameters")));
  // No state is left over.
  EXPECT_TRUE(EncodedStream(encoder, {}, text) == whole);
}

TEST(DeflateParametersTest, HaveCodes) {
  size_t valid = 0;
  for (uint32_t code = 0; code < kDeflateParametersCodeEnd + 10; ++code) {
    const std::optional<DeflateParameters> parameters =
        DeflateParametersFromCode(code);
    if (parameters.has_value()) {
      ++valid;
      EXPECT_EQ(DeflateParametersCode(*parameters), code);
    }
  }
  // zlib: 9 levels, 9 memory levels, 7 windows, 5 strategies; gzip: 9 levels.
  EXPECT_EQ(valid, 9 * 9 * 7 * 5 + 9);
  EXPECT_EQ(DeflateParametersText({}), "zlib level 6");
  EXPECT_EQ(
      DeflateParametersText({.encoder = DeflateEncoderId::kGzip, .level = 9}),
      "gzip level 9");
  EXPECT_EQ(DeflateParametersText({.memory_level = 9,
                                   .window_bits = 12,
                                   .strategy = DeflateStrategy::kRle}),
            "zlib level 6, memory level 9, window bits 12, strategy RLE");
}

}  // namespace
}  // namespace quire
