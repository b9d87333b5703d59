// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/build_choice.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/ingest/build_pipeline.h"
#include "server/ingest/testing/ingest_testing.h"
#include "server/ingest/testing/memory_source.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

TEST(BuildChoiceTest, ObjectivesHaveNames) {
  for (const AutoObjective objective : kAutoObjectives) {
    EXPECT_EQ(ParseObjective(ObjectiveName(objective)), objective);
  }
  EXPECT_EQ(ParseObjective("small"), std::nullopt);
}

// A separate choice equals that of the build, and leaves no files.
TEST(BuildChoiceTest, IsThatOfTheBuild) {
  IdsAndContents documents;
  for (int release = 0; release < 4; ++release) {
    for (uint64_t i = 0; i < 10; ++i) {
      documents.emplace_back("x", MakeTestText(20'000, i));
    }
  }
  for (const auto& [reorder, chosen] :
       {std::pair(ReorderMode::kOff, ReorderMode::kOff),
        std::pair(ReorderMode::kAuto, ReorderMode::kDuplicates)}) {
    const TemporaryDirectory directory;
    BuildOptions options;
    options.archive.codec = *ParseCodecSpec("rlz");
    options.dictionary_size_bytes = 40'000;
    options.reorder = reorder;
    const auto sources = OneSource(documents);
    QUIRE_ASSERT_OK_AND_ASSIGN(const BuildChoice choice,
                               ChooseBuild(directory / "x", sources, options));
    EXPECT_EQ(choice.reorder, chosen);
    EXPECT_LE(choice.dictionary_size_bytes, 40'000);
    EXPECT_THAT(Archive::Open(directory / "x"),
                HasCode(absl::StatusCode::kNotFound));
    QUIRE_ASSERT_OK_AND_ASSIGN(const BuildSummary summary,
                               BuildArchive(directory / "x", sources, options));
    EXPECT_EQ(summary.choice.reason, choice.reason);
    EXPECT_EQ(summary.info.choice, choice.reason);
    EXPECT_EQ(summary.info.dictionary_size_bytes, choice.dictionary_size_bytes);
  }
}

}  // namespace
}  // namespace quire
