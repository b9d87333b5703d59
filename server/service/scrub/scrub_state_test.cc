// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/scrub/scrub_state.h"

#include <fstream>
#include <string>

#include "testing/base/status_matchers.h"
#include "testing/base/temporary_directory.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ScrubStateTest : public ::testing::Test {
 protected:
  const TemporaryDirectory scratch_;
  const std::string directory_ = scratch_.path();
};

TEST_F(ScrubStateTest, KeepsItsProgress) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const ScrubState none, ReadScrubState(directory_));
  EXPECT_THAT(none, IsEmpty());
  const ScrubState state = {{"docs",
                             {.uuid = "u-1",
                              .next_block = 5,
                              .segment_number = 4,
                              .segment_next_block = 1,
                              .damaged_count = 2}},
                            {"web-1",
                             {.uuid = "u-2",
                              .last_damaged_count = 7,
                              .completed_at_s = 1'700'000'000}}};
  QUIRE_ASSERT_OK(WriteScrubState(directory_, state));
  QUIRE_ASSERT_OK_AND_ASSIGN(const ScrubState same, ReadScrubState(directory_));
  EXPECT_EQ(same, state);
  // A half-written file of a killed server does no harm.
  std::ofstream(directory_ + "/scrub.new") << "half";
  QUIRE_ASSERT_OK(WriteScrubState(directory_, {}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const ScrubState empty,
                             ReadScrubState(directory_));
  EXPECT_THAT(empty, IsEmpty());
}

TEST_F(ScrubStateTest, ReadsVersion1) {
  std::ofstream(directory_ + "/scrub") << "quire-scrub 1\ndocs u 1 2 3 4\n";
  QUIRE_ASSERT_OK_AND_ASSIGN(const ScrubState state,
                             ReadScrubState(directory_));
  EXPECT_EQ(state, (ScrubState{{"docs",
                                {.uuid = "u",
                                 .next_block = 1,
                                 .damaged_count = 2,
                                 .last_damaged_count = 3,
                                 .completed_at_s = 4}}}));
}

TEST_F(ScrubStateTest, RefusesOtherFiles) {
  for (const char* text :
       {"", "quire-scrub 1", "quire-scrub 3\n", "quire-scrub 1\ndocs u 1 2 3\n",
        "quire-scrub 1\ndocs u 1 2 3 x\n", "quire-scrub 1\ndocs u 1 2 3 4",
        "quire-scrub 1\ndocs u 1 2 3 4 - 0\n",
        "quire-scrub 2\ndocs u 1 2 3 4\n",
        "quire-scrub 2\ndocs u 1 2 3 4 x 0\n",
        "quire-scrub 2\ndocs u 1 2 3 4 - x\n"}) {
    SCOPED_TRACE(text);
    std::ofstream(directory_ + "/scrub") << text;
    EXPECT_THAT(ReadScrubState(directory_),
                FailsWith(absl::StatusCode::kDataLoss,
                          HasSubstr(directory_ + "/scrub: ")));
  }
  EXPECT_THAT(WriteScrubState(directory_ + "/none", {}),
              HasCode(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace quire
