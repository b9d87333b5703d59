// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/planner/plan_file.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include "codecs/base/status_matchers.h"
#include "server/planner/plan_report.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

std::string SomePlan() {
  Plan plan;
  plan.text_size_bytes = 1000000;
  plan.cells.resize(2);
  plan.cells[0].codec = "zstd:9";
  plan.cells[0].block_size_bytes = 65536;
  plan.cells[1].codec = "rlz:2";
  plan.cells[1].block_size_bytes = 16384;
  plan.cells[1].dictionary_size_bytes = 1 << 20;
  plan.recommended = 1;
  return FormatPlanJson({}, plan);
}

std::string With(const std::string& from, const std::string& to) {
  const std::string plan = SomePlan();
  EXPECT_THAT(plan, HasSubstr(from));
  return absl::StrReplaceAll(plan, {{from, to}});
}

TEST(PlanFileTest, ReadsTheRecommendedCellOfWhatPlanWrites) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const RecommendedArchive planned,
                             ParsePlan(SomePlan()));
  EXPECT_EQ(planned.codec, "rlz:2");
  EXPECT_EQ(planned.block_size_bytes, 16384);
  EXPECT_EQ(planned.dictionary_size_bytes, 1 << 20);
  EXPECT_EQ(planned.text_size_bytes, 1000000);
  EXPECT_EQ(planned.hash, ParsePlan(SomePlan())->hash);
  EXPECT_NE(planned.hash, ParsePlan(SomePlan() + " ")->hash);
}

TEST(PlanFileTest, SaysWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "not a JSON object"},
      {"[1, 2]", "not a JSON object"},
      {SomePlan().substr(0, 200), "not a JSON object"},
      {std::string(100000, '['), "not a JSON object"},
      {"{}", "\"version\""},
      {With("\"version\": 1", "\"version\": 2"), "of version 2"},
      {With("\"version\": 1", "\"version\": \"1\""), "\"version\""},
      {With("\"cells\"", "\"rows\""), "no list \"cells\""},
      {With("\"recommended\": 1", "\"recommended\": 2"), "cell 2 of 2"},
      {With("\"recommended\": 1", "\"recommended\": -1"), "\"recommended\""},
      {With("\"recommended\"", "\"other\""), "recommends nothing"},
      {With("rlz:2", "rlz:200"), "200"},
      {With("rlz:2", "zstd:3"), "with a dictionary of 1MiB"},
      {With("16384", "1.5"), "\"block_size_bytes\""},
      {With("16384", "99999999"), "at most 1048576"},
      {With("1048576", "99999999999"), "\"dictionary_size_bytes\""},
      {With("\"text_size_bytes\"", "\"size\""), "\"text_size_bytes\""}};
  for (const auto& [json, message] : cases) {
    const auto planned = ParsePlan(json);
    EXPECT_FALSE(planned.ok()) << message;
    EXPECT_THAT(planned.status().message(), HasSubstr(message));
  }
}

TEST(PlanFileTest, FitsAboutAsMuchText) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const RecommendedArchive planned,
                             ParsePlan(SomePlan()));
  for (const uint64_t size : {500000u, 1000000u, 2000000u}) {
    QUIRE_EXPECT_OK(CheckPlanFits(planned, size));
  }
  for (const uint64_t size : {0u, 499000u, 2000002u}) {
    EXPECT_EQ(CheckPlanFits(planned, size).code(),
              absl::StatusCode::kFailedPrecondition);
  }
}

TEST(PlanFileTest, NamesAFileThatIsNotThere) {
  for (const char* path : {"/no/such/plan.json", "/"}) {
    EXPECT_THAT(ReadPlanFile(path).status().message(), HasSubstr(path));
  }
}

}  // namespace
}  // namespace quire
