// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/coverage_dictionary.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "codecs/base/checksum.h"
#include "testing/base/sanitized.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"
#include "testing/codecs/threaded_work.h"

namespace quire {
namespace {

// Feeds the text in pieces of random sizes up to `piece_max`, which is not 0.
void Feed(DictionaryBuilder& builder, const std::string& text,
          TestRandom& random, size_t piece_max) {
  ByteView left = AsBytes(text);
  while (!left.empty()) {
    const size_t size =
        std::min(left.size(), RandomBelow(random, piece_max + 1));
    EXPECT_THAT(builder.Add(left.first(size)), IsOk());
    left = left.subspan(size);
  }
  EXPECT_THAT(builder.FinishPass(), IsOk());
}

std::string BuildDictionary(uint64_t dictionary_size, const std::string& text,
                            size_t piece_max = 100000,
                            uint64_t block_size = 64 << 10,
                            uint32_t threads = 1) {
  TestRandom random(piece_max);
  auto builder =
      MakeCoverageDictionaryBuilder({.dictionary_size_bytes = dictionary_size,
                                     .block_size_bytes = block_size,
                                     .workers = ThreadedWork(threads)},
                                    text.size());
  EXPECT_THAT(builder, IsOk());
  if (!builder.ok()) {
    return "";
  }
  for (int pass = 0; pass < (*builder)->pass_count(); ++pass) {
    Feed(**builder, text, random, piece_max);
  }
  return (*builder)->Take();
}

// Returns documents of about 3 KiB, each with one of `template_count` templates
// of 2 KiB in it.
std::string SiteText(TestRandom& random, size_t size, size_t template_count) {
  std::vector<std::string> templates;
  for (size_t i = 0; i < template_count; ++i) {
    templates.push_back(RandomText(random, 2048));
  }
  std::string text;
  while (text.size() < size) {
    text += templates[RandomBelow(random, template_count)];
    text += RandomText(random, 512 + RandomBelow(random, 1024));
  }
  text.resize(size);
  return text;
}

// Returns the share of `text`'s pieces of 64 bytes that are in the dictionary,
// in percent.
size_t PercentFound(const std::string& text, const std::string& dictionary) {
  size_t found = 0;
  size_t count = 0;
  for (size_t from = 0; from + 64 <= text.size(); from += 64) {
    ++count;
    found += absl::StrContains(dictionary, text.substr(from, 64)) ? 1 : 0;
  }
  return found * 100 / std::max<size_t>(count, 1);
}

TEST(CoverageDictionaryTest, HoldsPiecesOfTheTextInItsOrder) {
  TestRandom random(1);
  const std::string text = SiteText(random, 3 << 20, 200);
  for (const uint64_t size : {uint64_t{16} << 10, uint64_t{100000}}) {
    const std::string dictionary = BuildDictionary(size, text);
    EXPECT_LE(dictionary.size(), size);
    EXPECT_GT(dictionary.size(), size * 9 / 10);
    // Each piece is found after the previous one. A piece that was taken from
    // further on may seem to begin earlier, and then looks like two.
    size_t pieces = 0;
    size_t at = 0;
    for (size_t done = 0; done < dictionary.size();) {
      at = text.find(dictionary.substr(done, 32), at);
      ASSERT_NE(at, std::string::npos) << done;
      while (done < dictionary.size() && at < text.size() &&
             text[at] == dictionary[done]) {
        ++at;
        ++done;
      }
      ++pieces;
    }
    EXPECT_LT(pieces, dictionary.size() / 256);
  }
}

TEST(CoverageDictionaryTest, DoesNotDependOnPieces) {
  TestRandom random(2);
  const std::string text = SiteText(random, 700001, 50);
  const std::string whole = BuildDictionary(50000, text, text.size());
  EXPECT_FALSE(whole.empty());
  for (const size_t piece_max :
       std::initializer_list<size_t>{3, 1000, 65536, 65537, 200000}) {
    EXPECT_TRUE(BuildDictionary(50000, text, piece_max) == whole) << piece_max;
  }
}

// Also if the text fills some blocks of the threads, and a last one in part.
TEST(CoverageDictionaryTest, ThreadsDoNotChangeIt) {
  TestRandom random(1);
  const std::string text = SiteText(random, 1'500'000, 20);
  const std::string with_one =
      BuildDictionary(50000, text, 100000, /*block_size=*/16 << 10);
  for (const uint32_t threads : {2U, 3U, 16U}) {
    EXPECT_TRUE(BuildDictionary(50000, text, 100000, /*block_size=*/16 << 10,
                                threads) == with_one)
        << threads;
  }
}

// A change of this number changes every archive.
TEST(CoverageDictionaryTest, IsTheSameOnEveryMachine) {
  TestRandom random(3);
  const std::string text = SiteText(random, 1 << 20, 100);
  const std::string dictionary = BuildDictionary(64 << 10, text);
  EXPECT_EQ(Checksum64(AsBytes(dictionary)), 15004236595354362593u)
      << dictionary.size();
}

TEST(CoverageDictionaryTest, LeavesOutWhatBlocksHoldThemselves) {
  TestRandom random(9);
  // In each 64 KiB the same 12 KiB occur twice, 32 KiB apart.
  std::string text;
  for (int i = 0; i < 16; ++i) {
    const std::string twice = RandomText(random, 12 << 10, 100000);
    for (int k = 0; k < 2; ++k) {
      text += twice;
      text += RandomText(random, 20 << 10, 100000);
    }
  }
  const size_t size = 256 << 10;
  const size_t in_large_blocks = BuildDictionary(size, text).size();
  for (const uint64_t block_size :
       std::initializer_list<uint64_t>{4 << 10, 16 << 10}) {
    EXPECT_GT(BuildDictionary(size, text, 100000, block_size).size(),
              in_large_blocks + (100 << 10));
  }
  EXPECT_EQ(BuildDictionary(size, text, 100000, 1 << 20).size(),
            in_large_blocks);
}

TEST(CoverageDictionaryTest, PrefersWhatRepeatsOften) {
  TestRandom random(4);
  // Templates of the first part occur about 80 times, of the second twice.
  const std::string often = SiteText(random, 1 << 20, 4);
  const std::string seldom = SiteText(random, 1 << 20, 170);
  const std::string dictionary = BuildDictionary(16 << 10, often + seldom);
  EXPECT_GT(PercentFound(often, dictionary), 55);
  EXPECT_LT(PercentFound(seldom, dictionary), 10);
}

TEST(CoverageDictionaryTest, LeavesOutWhatNeverRepeats) {
  TestRandom random(5);
  const std::string repeated = RandomText(random, 5000);
  std::string text;
  for (int i = 0; i < 30; ++i) {
    text += RandomText(random, 60000);
    text += repeated;
  }
  const std::string dictionary = BuildDictionary(512 << 10, text);
  EXPECT_GE(PercentFound(repeated, dictionary), 95);
  EXPECT_LT(dictionary.size(), 64 << 10);
}

TEST(CoverageDictionaryTest, RepetitionWithinABlockIsWorthNothing) {
  TestRandom random(6);
  const std::string across = RandomText(random, 4096);
  std::string text;
  for (int i = 0; i < 20; ++i) {
    // Eight times, but all within blocks.
    const std::string within = RandomText(random, 4096);
    text += across;
    for (int j = 0; j < 8; ++j) {
      text += within;
    }
    text.resize(static_cast<size_t>(i + 1) * 65536, ' ');
  }
  const std::string dictionary = BuildDictionary(8192, text);
  EXPECT_GE(PercentFound(across, dictionary), 85);
}

TEST(CoverageDictionaryTest, KeepsCompressedTextOutUnlessItRepeats) {
  TestRandom random(7);
  const std::string repeated = RandomText(random, 8192);
  const std::string logo = RandomBytes(random, 8192);
  std::string text;
  std::string images;
  for (int i = 0; i < 40; ++i) {
    const std::string image = RandomBytes(random, 30000);
    text += RandomText(random, 30000);
    text += repeated;
    text += image;
    text += i < 3 ? logo : "";
    images += image;
  }
  const std::string dictionary = BuildDictionary(256 << 10, text);
  EXPECT_GE(PercentFound(repeated, dictionary), 95);
  EXPECT_GE(PercentFound(logo, dictionary), 90);
  // Only edges of the images that occur once.
  EXPECT_LE(PercentFound(images, dictionary), 1);
}

TEST(CoverageDictionaryTest, OfASmallTextIsTheText) {
  TestRandom random(8);
  for (const size_t size :
       std::initializer_list<size_t>{0, 1, 31, 1000, 70000}) {
    const std::string text = RandomText(random, size);
    for (const uint64_t wanted :
         {uint64_t{size}, uint64_t{70001}, uint64_t{64} << 20,
          kDictionarySizeBytesMax}) {
      if (wanted >= size) {
        EXPECT_TRUE(BuildDictionary(wanted, text) == text);
      }
    }
  }
}

TEST(CoverageDictionaryTest, IsFilledWhereAllIsWorthTheSame) {
  TestRandom random(9);
  const std::string half = RandomText(random, 1 << 20, 100000);
  for (const size_t size :
       std::initializer_list<size_t>{8192, 30000, 100000, 500000}) {
    const std::string dictionary = BuildDictionary(size, half + half);
    EXPECT_LE(dictionary.size(), size);
    EXPECT_GT(dictionary.size(), size * 9 / 10);
  }
}

TEST(CoverageDictionaryTest, MayBeEmptyOrTiny) {
  TestRandom random(10);
  const std::string text = SiteText(random, 300000, 3);
  for (const uint64_t size :
       std::initializer_list<uint64_t>{0, 1, 31, 32, 300, 4096}) {
    EXPECT_LE(BuildDictionary(size, text).size(), size);
  }
  EXPECT_LE(BuildDictionary(10, std::string(11, 'x')).size(), 10);
}

TEST(CoverageDictionaryTest, TakesAnyTextAndSize) {
  const uint64_t seed = 11;
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  TestRandom random(seed);
  const std::string source = SiteText(random, 200000, 20);
  for (int round = 0; round < Fewer(40); ++round) {
    const size_t size = 1 + RandomBelow(random, 400000);
    for (const TestInput& input : TestInputs(random, size, source)) {
      const uint64_t wanted = RandomBelow(random, 100000);
      SCOPED_TRACE(absl::StrCat(input.name, " of ", size, ", ", wanted));
      const std::string dictionary = BuildDictionary(wanted, input.text);
      ASSERT_LE(dictionary.size(), wanted);
    }
  }
}

TEST(CoverageDictionaryTest, NoticesATextThatChanged) {
  const std::string text(200000, 'x');
  for (const int pass : {0, 1}) {
    SCOPED_TRACE(pass);
    const auto make = [&] {
      auto builder = MakeCoverageDictionaryBuilder(
          {.dictionary_size_bytes = 1000}, 199999);
      EXPECT_THAT(builder, IsOk());
      EXPECT_EQ((*builder)->pass_count(), 2);
      for (int i = 0; i < pass; ++i) {
        EXPECT_THAT((*builder)->Add(AsBytes(text).first(199999)), IsOk());
        EXPECT_THAT((*builder)->FinishPass(), IsOk());
      }
      return *std::move(builder);
    };
    EXPECT_THAT(make()->Add(AsBytes(text)),
                HasCode(absl::StatusCode::kFailedPrecondition));
    const auto shorter = make();
    EXPECT_THAT(shorter->Add(AsBytes(text).first(199998)), IsOk());
    EXPECT_THAT(shorter->FinishPass(),
                HasCode(absl::StatusCode::kFailedPrecondition));
  }
}

TEST(CoverageDictionaryTest, BoundsItsMemory) {
  for (const uint64_t dictionary_size :
       {uint64_t{64} << 10, uint64_t{16} << 20, uint64_t{64} << 20}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const auto builder,
        MakeCoverageDictionaryBuilder(
            {.dictionary_size_bytes = dictionary_size}, uint64_t{1} << 40));
    EXPECT_LE(builder->MemoryBytesMax(), 8 * dictionary_size + (4 << 20));
    EXPECT_GE(builder->MemoryBytesMax(), 3 * dictionary_size);
  }
}

TEST(CoverageDictionaryTest, RefusesSizesThatCannotBe) {
  EXPECT_THAT(
      MakeCoverageDictionaryBuilder(
          {.dictionary_size_bytes = kDictionarySizeBytesMax + 1}, 1ull << 40),
      HasCode(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace quire
