// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/order_choice.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "server/ingest/build_pipeline.h"
#include "server/ingest/testing/ingest_testing.h"
#include "server/ingest/testing/memory_source.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"

namespace quire {
namespace {

// Returns the archive's size.
uint64_t SizeOf(const IdsAndContents& documents, BuildOptions options,
                ReorderMode reorder) {
  const TemporaryDirectory directory;
  options.reorder = reorder;
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(std::make_unique<MemorySource>(
      [&](int) -> IdsAndContents { return documents; }));
  const auto summary = BuildArchive(directory / "x", sources, options);
  EXPECT_TRUE(summary.ok()) << summary.status();
  uint64_t size_bytes = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(directory / "x")) {
    size_bytes += file.file_size();
  }
  return size_bytes;
}

// Twenty texts of words in three releases. Each release changes a few bytes in
// every `edit_distance` of each text.
IdsAndContents Releases(size_t edit_distance) {
  IdsAndContents documents;
  for (uint64_t i = 0; i < 20; ++i) {
    std::mt19937_64 random(i);
    std::string text;
    while (text.size() < 20'000) {
      // Short words are frequent.
      const uint64_t rank = random() % (uint64_t{1} << (1 + random() % 12));
      absl::StrAppend(&text, "w", rank * 7919 % 100'003, " ");
    }
    for (int release = 0; release < 3; ++release) {
      std::string edited = text;
      for (size_t at = random() % edit_distance;
           release > 0 && at + 3 < edited.size(); at += edit_distance) {
        edited.replace(at, 3, absl::StrCat("E", 10 + random() % 90));
      }
      documents.emplace_back(absl::StrCat(release, "/", i), std::move(edited));
    }
  }
  std::ranges::stable_sort(documents, {}, [](const auto& document) {
    return document.first.front();
  });
  return documents;
}

// A dictionary with all repeated text makes edited releases smaller than
// omitting their duplicates; a small one does not.
TEST(OrderChoiceTest, AutoIsNeverLargerThanOff) {
  int kept_count = 0;
  int changed_count = 0;
  for (const size_t edit_distance : std::vector<size_t>{6'000, 1'000'000}) {
    const IdsAndContents documents = Releases(edit_distance);
    for (const char* codec : SomeOf<const char*>({"rlz", "rlz:fast"}, 2)) {
      for (const uint64_t dictionary_size :
           std::vector<uint64_t>{32 << 10, 600 << 10}) {
        SCOPED_TRACE(
            absl::StrCat(codec, " ", dictionary_size, " ", edit_distance));
        BuildOptions options;
        options.archive.codec = *ParseCodecSpec(codec);
        options.archive.block_size_bytes = 64 << 10;
        options.dictionary_size_bytes = dictionary_size;
        const uint64_t off = SizeOf(documents, options, ReorderMode::kOff);
        const uint64_t chosen = SizeOf(documents, options, ReorderMode::kAuto);
        EXPECT_LE(chosen, off + off / 1000);
        const uint64_t deduplicated =
            SizeOf(documents, options, ReorderMode::kDuplicates);
        kept_count += deduplicated > off + off / 1000 ? 1 : 0;
        changed_count += chosen < off - off / 10 ? 1 : 0;
      }
    }
  }
  // Each answer is right for some.
  EXPECT_GT(kept_count, 0);
  EXPECT_GT(changed_count, 0);
}

TEST(OrderChoiceTest, MovesOnlyWhatADictionaryCannotHold) {
  EXPECT_TRUE(MayBeWorthMoving(1000, 1000, 5000));
  EXPECT_TRUE(MayBeWorthMoving(900, 1000, 5000));
  // Has space for more.
  EXPECT_FALSE(MayBeWorthMoving(800, 1000, 5000));
  // Has most of the text.
  EXPECT_FALSE(MayBeWorthMoving(1000, 1000, 1500));
}

// Releases with many edits: half of the chunks are duplicates, the others only
// similar.
TEST(OrderChoiceTest, MovesSimilarTextBeyondTheDictionary) {
  const IdsAndContents documents = Releases(3'000);
  BuildOptions options;
  options.archive.codec = *ParseCodecSpec("rlz");
  options.archive.block_size_bytes = 64 << 10;

  struct Case {
    AutoObjective objective;
    uint64_t dictionary_size;
    ReorderMode chosen;
  };

  for (const auto& [objective, dictionary_size, chosen] :
       {Case{AutoObjective::kArchive, 32 << 10, ReorderMode::kFull},
        Case{AutoObjective::kArchive, 600 << 10, ReorderMode::kOff},
        Case{AutoObjective::kBalanced, 32 << 10, ReorderMode::kDuplicates}}) {
    options.objective = objective;
    options.dictionary_size_bytes = dictionary_size;
    options.reorder = ReorderMode::kAuto;
    const TemporaryDirectory directory;
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const BuildChoice choice,
        ChooseBuild(directory / "x", OneSource(documents), options));
    EXPECT_EQ(choice.reorder, chosen) << choice.reason;
  }
}

// A trial costs as much as encoding twice: only where enough text repeats, by
// what it takes compressed.
TEST(OrderChoiceTest, TriesOnlyWhereEnoughRepeats) {
  std::mt19937_64 random(1);
  const auto noise = [&] {
    std::string bytes(64 << 10, '\0');
    std::ranges::generate(bytes, [&] { return static_cast<char>(random()); });
    return bytes;
  };
  const auto is_tried = [](const IdsAndContents& documents) {
    const TemporaryDirectory directory;
    BuildOptions options;
    options.archive.codec = *ParseCodecSpec("rlz");
    options.archive.block_size_bytes = 64 << 10;
    options.dictionary_size_bytes = 64 << 10;
    options.reorder = ReorderMode::kAuto;
    std::vector<std::unique_ptr<Source>> sources;
    sources.push_back(std::make_unique<MemorySource>(
        [&](int) -> IdsAndContents { return documents; }));
    const auto choice = ChooseBuild(directory / "x", sources, options);
    EXPECT_TRUE(choice.ok()) << choice.status();
    return choice.ok() && absl::StrContains(choice->reason, "by a trial");
  };
  IdsAndContents documents;
  for (int i = 0; i < 40; ++i) {
    documents.emplace_back(absl::StrCat(i), noise());
  }
  documents.emplace_back("copy 1", documents[3].second);
  EXPECT_FALSE(is_tried(documents));
  for (size_t i = 10; i < 20; ++i) {
    documents.emplace_back(absl::StrCat("copy ", i), documents[i].second);
  }
  EXPECT_TRUE(is_tried(documents));
  // One copy in forty, but hardly anything else is large when compressed.
  for (size_t i = 4; i < 40; ++i) {
    documents[i].second.assign(64 << 10, static_cast<char>('a' + i % 20));
  }
  documents.resize(41);
  EXPECT_TRUE(is_tried(documents));
}

}  // namespace
}  // namespace quire
