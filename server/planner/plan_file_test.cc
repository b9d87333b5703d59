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
  for (const AutoObjective objective : kAutoObjectives) {
    for (const AutoMember& member : AutoMembers(objective)) {
      plan.codec_speeds[FormatCodecSpec(member.spec)] = member.speed;
    }
  }
  plan.codec_speeds["xz:6"] = {.encode = 3'456'789, .decode = 87'654'321};
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

TEST(PlanFileTest, ReadsTheSpeedsThatAutoChoosesBy) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const RecommendedArchive planned,
                             ParsePlan(SomePlan()));
  ASSERT_TRUE(planned.auto_speeds.has_value());
  for (const AutoObjective objective : kAutoObjectives) {
    const AutoSpeeds speeds = SpeedsOf(*planned.auto_speeds, objective);
    for (size_t i = 0; i < speeds.size(); ++i) {
      const AutoMember& member = AutoMembers(objective)[i];
      const bool is_changed = FormatCodecSpec(member.spec) == "xz:6";
      EXPECT_EQ(speeds[i].encode, is_changed ? 3'456'789 : member.speed.encode);
      EXPECT_EQ(speeds[i].decode,
                is_changed ? 87'654'321 : member.speed.decode);
    }
  }
}

TEST(PlanFileTest, ThoseOfVersion1HaveNoSpeeds) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const RecommendedArchive planned,
      ParsePlan(absl::StrReplaceAll(With("\"version\": 2", "\"version\": 1"),
                                    {{"\"codec_speeds\"", "\"other\""}})));
  EXPECT_EQ(planned.codec, "rlz:2");
  EXPECT_FALSE(planned.auto_speeds.has_value());
}

TEST(PlanFileTest, NamesTheSpeedThatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {With("\"codec_speeds\"", "\"speeds\""), "no object \"codec_speeds\""},
      {With("\"xz:6\"", "\"xz:5\""),
       "\"codec_speeds\" of the plan has no "
       "codec xz:6"},
      {With("87654321", "0"),
       "\"codec_speeds\", codec xz:6: "
       "\"decode_bytes_per_second\" of a plan must be "
       "at least 1000, got 0"},
      {With("87654321", "-5"),
       "codec xz:6: a plan must have a whole number "
       "\"decode_bytes_per_second\""},
      {With("87654321", "1e300"), "\"decode_bytes_per_second\""},
      {With("87654321", "null"), "\"decode_bytes_per_second\""},
      {With("87654321", "\"fast\""), "\"decode_bytes_per_second\""},
      {With("87654321", "NaN"), "not a JSON object"},
      {With("3456789", "1000000000001"),
       "\"encode_bytes_per_second\" of a plan must be at most 1000000000000"},
      {With("3456789", "999"), "at least 1000, got 999"}};
  for (const auto& [json, message] : cases) {
    const auto planned = ParsePlan(json);
    EXPECT_EQ(planned.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(planned.status().message(), HasSubstr(message));
  }
}

TEST(PlanFileTest, SaysWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "not a JSON object"},
      {"[1, 2]", "not a JSON object"},
      {SomePlan().substr(0, 200), "not a JSON object"},
      {std::string(100000, '['), "not a JSON object"},
      {"{}", "\"version\""},
      {With("\"version\": 2", "\"version\": 3"), "of version 3"},
      {With("\"version\": 2", "\"version\": 0"), "of version 0"},
      {With("\"version\": 2", "\"version\": \"1\""), "\"version\""},
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
