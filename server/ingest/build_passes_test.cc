// SPDX-License-Identifier: GPL-3.0-or-later
//
// The text of passes over inputs that change, and how often they report.
#include "server/ingest/build_passes.h"

#include <algorithm>
#include <atomic>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "server/ingest/testing/ingest_testing.h"
#include "server/ingest/testing/memory_source.h"
#include "server/ingest/text/reordered_text.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

// Collects the text of a pass.
BuildPasses::AddText AppendTo(std::string& text) {
  return [&text](ByteView piece) {
    EXPECT_FALSE(piece.empty());
    absl::StrAppend(&text, AsText(piece));
    return absl::OkStatus();
  };
}

TEST(BuildPassesTest, FeedsTheTextThatWasCounted) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    IdsAndContents documents;
    std::string counted;
    for (size_t i = 0; i < random() % 8; ++i) {
      documents.emplace_back("id", MakeTestText(random() % 9000, i));
      counted += documents.back().second;
    }
    const size_t grown = random() % 2 * 5000;
    const auto sources = Sources(std::make_unique<MemorySource>([=](int pass) {
      IdsAndContents found = documents;
      if (pass > 0 && !found.empty()) {
        found[found.size() / 2].second += std::string(grown, '+');
      }
      return found;
    }));
    const BuildOptions options;
    BuildPasses passes(sources, options);
    QUIRE_ASSERT_OK_AND_ASSIGN(const uint64_t size, passes.Count());
    ASSERT_EQ(size, counted.size());
    QUIRE_ASSERT_OK(passes.StartPhase(BuildPhase::kDictionary, size));
    std::string fed;
    QUIRE_ASSERT_OK(passes.FeedDocuments(AppendTo(fed)));
    EXPECT_EQ(fed.size(), size);
    EXPECT_EQ(passes.progress().done_bytes, size);
    if (grown == 0) {
      EXPECT_EQ(fed, counted);
    }
  }
}

TEST(BuildPassesTest, FeedsTheStartOfAFileAndNoticesACutOne) {
  const TemporaryDirectory directory;
  const std::string text = MakeTestText(3'000'000, 1);
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto file,
                             InputFile::Open(directory.Write("text", text)));
  const std::vector<std::unique_ptr<Source>> sources;
  std::atomic<bool> cancel = false;
  BuildOptions options;
  options.cancel = &cancel;
  BuildPasses passes(sources, options);
  for (const size_t size : std::vector<size_t>{0, 1, 2'500'000, 3'000'000}) {
    QUIRE_ASSERT_OK(passes.StartPhase(BuildPhase::kTrial, size));
    std::string fed;
    QUIRE_ASSERT_OK(passes.FeedFile(*file, AppendTo(fed)));
    EXPECT_TRUE(fed == text.substr(0, size)) << size;
  }
  std::string fed;
  QUIRE_ASSERT_OK(passes.StartPhase(BuildPhase::kTrial, 3'000'001));
  EXPECT_THAT(passes.FeedFile(*file, AppendTo(fed)),
              HasCode(StoredTextChanged(*file).code()));
  QUIRE_ASSERT_OK(passes.StartPhase(BuildPhase::kTrial, 3'000'000));
  cancel = true;
  EXPECT_THAT(passes.FeedFile(*file, AppendTo(fed)),
              HasCode(absl::StatusCode::kCancelled));
  EXPECT_THAT(passes.StartPhase(BuildPhase::kTrial, 1),
              HasCode(absl::StatusCode::kCancelled));
}

TEST(BuildPassesTest, ReportsTheStartOfAPhaseAndEveryTwoMebibytes) {
  std::vector<uint64_t> reported;
  BuildOptions options;
  options.on_progress = [&](const BuildProgress& progress) {
    reported.push_back(progress.done_bytes);
  };
  const std::vector<std::unique_ptr<Source>> sources;
  BuildPasses passes(sources, options);
  for (int phase = 0; phase < 2; ++phase) {
    reported.clear();
    QUIRE_ASSERT_OK(passes.StartPhase(BuildPhase::kEncode, 10'000'000));
    for (int i = 0; i < 1000; ++i) {
      passes.Advance(10'000);
    }
    EXPECT_THAT(reported, testing::ElementsAre(0, 2'100'000, 4'200'000,
                                               6'300'000, 8'400'000));
  }
}

}  // namespace
}  // namespace quire
