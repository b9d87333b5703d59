// SPDX-License-Identifier: Apache-2.0
#include "loadtest/codec_bench/chosen_dictionary.h"

#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/status_matchers.h"
#include "codecs/codec_test_inputs.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<SourceText> OpenText(const std::string& text) {
  const std::string path =
      absl::StrCat(testing::TempDir(), "/chosen_dictionary_test.", getpid());
  std::ofstream(path, std::ios::binary) << text;
  std::unique_ptr<SourceText> source = SourceText::Open(path, "").value();
  unlink(path.c_str());
  return source;
}

TEST(ChosenDictionaryTest, SamplesAtRegularIntervals) {
  TestRandom random(1);
  // Larger than the pieces in which the text is fed.
  const std::string text = RandomBytes(random, 4 << 20);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const ChosenDictionary chosen,
      ChooseDictionary(*OpenText(text), "uniform", 4096));
  std::string expected;
  for (size_t i = 0; i < 4; ++i) {
    expected += text.substr(i << 20, 1024);
  }
  EXPECT_TRUE(chosen.text == expected);
  EXPECT_GT(chosen.choose_cpu_seconds, 0.0);
}

TEST(ChosenDictionaryTest, CoversWhatRepeats) {
  TestRandom random(1);
  const std::string repeated = RandomText(random, 64 << 10);
  std::string text;
  for (int i = 0; i < 20; ++i) {
    text += repeated + RandomText(random, 64 << 10);
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const ChosenDictionary chosen,
      ChooseDictionary(*OpenText(text), "coverage", 256 << 10));
  EXPECT_GT(chosen.text.size(), 0u);
  EXPECT_LE(chosen.text.size(), size_t{256} << 10);
  EXPECT_NE(chosen.text.find(repeated.substr(30'000, 1000)), std::string::npos);
}

TEST(ChosenDictionaryTest, KnowsItsMethods) {
  EXPECT_THAT(
      ChooseDictionary(*OpenText("text"), "guess", 4096).status(),
      FailsWith(absl::StatusCode::kInvalidArgument, HasSubstr("guess")));
}

TEST(ChosenDictionaryTest, CountsCompressedBytes) {
  TestRandom random(1);
  const std::string noise = RandomBytes(random, 100'000);
  const std::string text = RandomText(random, 100'000);
  for (const auto size_of : {&XzSizeBytes, &ZlibSizeBytes}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const size_t noise_size, size_of(noise));
    QUIRE_ASSERT_OK_AND_ASSIGN(const size_t text_size, size_of(text));
    EXPECT_GE(noise_size, noise.size());
    EXPECT_LT(noise_size, noise.size() + 1000);
    EXPECT_LT(text_size, text.size() / 2);
    EXPECT_GT(text_size, text.size() / 20);
  }
}

}  // namespace
}  // namespace quire
