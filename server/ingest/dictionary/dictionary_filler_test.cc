// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/dictionary/dictionary_filler.h"

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/ingest/build_pipeline.h"
#include "server/ingest/testing/memory_source.h"
#include "testing/base/noise.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

// Words in random order: they repeat, but no run of 32 bytes does.
std::string RandomWords(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::string> words(4000);
  for (std::string& word : words) {
    word.resize(3 + random() % 8);
    for (char& c : word) {
      c = static_cast<char>('a' + random() % 26);
    }
  }
  std::string text;
  while (text.size() < size) {
    absl::StrAppend(&text, words[random() % words.size()], " ");
  }
  text.resize(size);
  return text;
}

std::string Filled(const std::string& text, const std::string& chosen,
                   size_t free_size, size_t piece_size) {
  const auto filler = DictionaryFiller::Create(free_size, text.size(), 16384);
  EXPECT_THAT(filler, IsOk());
  for (size_t at = 0; at < text.size(); at += piece_size) {
    EXPECT_THAT(
        (*filler)->Add(AsBytes(absl::string_view(text).substr(at, piece_size))),
        IsOk());
  }
  EXPECT_THAT((*filler)->Finish(), IsOk());
  const auto dictionary = (*filler)->Fill(chosen, *ParseCodecSpec("rlz"), 0.01);
  EXPECT_THAT(dictionary, IsOk());
  return dictionary.value_or("");
}

TEST(DictionaryFillerTest, TakesSamplesThatHelp) {
  const std::string text = RandomWords(3'000'000, 1);
  const std::string filled = Filled(text, "chosen", 200'000, 1'000'000);
  EXPECT_EQ(filled.size(), 200'006);
  EXPECT_EQ(filled.substr(0, 6), "chosen");
  for (const size_t piece_size : {size_t{777}, size_t{65536}, text.size()}) {
    EXPECT_TRUE(Filled(text, "chosen", 200'000, piece_size) == filled);
  }
}

TEST(DictionaryFillerTest, LeavesOutSamplesThatDoNot) {
  const std::string text = Noise(1'000'000, 2);
  EXPECT_EQ(Filled(text, "chosen", 100'000, 65536), "chosen");
  EXPECT_EQ(Filled("a little text", "", 5, 3), "");
}

// Half of the text is in the samples, and does not help the rest.
TEST(DictionaryFillerTest, JudgesSamplesOnTextThatTheyDoNotHold) {
  const std::string text = Noise(4'000'000, 7);
  EXPECT_EQ(Filled(text, "chosen", 2'000'000, 65536), "chosen");
}

uint64_t StoredSize(const std::string& text, DictionaryMethod method) {
  const TemporaryDirectory directory;
  BuildOptions options;
  options.archive.codec = *ParseCodecSpec("rlz");
  options.dictionary_size_bytes = 500'000;
  options.dictionary_method = method;
  const auto summary =
      BuildArchive(directory / "x.quire", OneSource({{"a", text}}), options);
  EXPECT_THAT(summary, IsOk());
  return summary.ok() ? summary->info.stored_size_bytes : 0;
}

TEST(DictionaryFillerTest, CoverageIsNoWorseThanUniformWithoutRepeats) {
  for (const std::string& text :
       {RandomWords(4'000'000, 3), Noise(2'000'000, 4),
        RandomWords(2'000'000, 5) + Noise(1'000'000, 6)}) {
    const uint64_t coverage = StoredSize(text, DictionaryMethod::kCoverage);
    const uint64_t uniform = StoredSize(text, DictionaryMethod::kUniform);
    EXPECT_LE(coverage, uniform + uniform / 50);
  }
}

}  // namespace
}  // namespace quire
