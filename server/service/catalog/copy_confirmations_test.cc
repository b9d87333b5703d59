// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog/copy_confirmations.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"

#include "testing/base/status_matchers.h"
#include "testing/base/temporary_directory.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kChecksum = 0x1234;

class CopyConfirmationsTest : public ::testing::Test {
 protected:
  std::string path() const { return scratch_.path(); }

  std::string FileName() const {
    return absl::StrCat(path(), "/", kConfirmedFileName);
  }

  void WriteConfirmation(absl::Duration age) const {
    std::ofstream(FileName())
        << FormatConfirmation(absl::Now() - age, kChecksum);
  }

  const TemporaryDirectory scratch_;
};

TEST_F(CopyConfirmationsTest, LaterProcessesKnowTheAge) {
  CopyConfirmations(absl::Hours(1)).Confirm(path(), kChecksum);
  CopyConfirmations later(absl::Hours(1));
  QUIRE_EXPECT_OK(later.Check(path(), kChecksum));
  // Another MANIFEST was never confirmed.
  EXPECT_THAT(CopyConfirmations(absl::Hours(1)).Check(path(), kChecksum + 1),
              FailsWith(absl::StatusCode::kUnavailable,
                        HasSubstr("was not confirmed")));
  WriteConfirmation(absl::Minutes(50));
  CopyConfirmations aged(absl::Hours(1));
  QUIRE_EXPECT_OK(aged.Check(path(), kChecksum));
  aged.SetStale(path(), "silent");
  const auto stale = aged.FindStale(path());
  ASSERT_TRUE(stale.has_value());
  EXPECT_GE(stale->age, absl::Minutes(50) - absl::Seconds(1));
  EXPECT_LT(stale->age, absl::Minutes(59));
  EXPECT_EQ(stale->reason, "silent");
  WriteConfirmation(absl::Minutes(70));
  EXPECT_THAT(CopyConfirmations(absl::Hours(1)).Check(path(), kChecksum),
              FailsWith(absl::StatusCode::kUnavailable,
                        HasSubstr("more than --store-stale-max 1h")));
}

TEST_F(CopyConfirmationsTest, AnUnknownAgeIsNoAge) {
  for (const std::string& text :
       {std::string(), std::string("1"), std::string("x 0000000000001234\n"),
        std::string("99999999999999999999 0000000000001234\n"),
        FormatConfirmation(absl::Now(), kChecksum) + " ",
        // The clock was set back, or was ahead when this was written.
        FormatConfirmation(absl::Now() + absl::Hours(5), kChecksum)}) {
    std::ofstream(FileName()) << text;
    EXPECT_THAT(CopyConfirmations(absl::Hours(1)).Check(path(), kChecksum),
                HasCode(absl::StatusCode::kUnavailable))
        << text;
  }
  std::filesystem::remove(FileName());
  EXPECT_THAT(CopyConfirmations(absl::Hours(1)).Check(path(), kChecksum),
              HasCode(absl::StatusCode::kUnavailable));
}

TEST_F(CopyConfirmationsTest, ADenialIsDurable) {
  CopyConfirmations first(absl::Hours(1));
  first.Confirm(path(), kChecksum);
  QUIRE_EXPECT_OK(first.Check(path(), kChecksum));
  first.SetStale(path(), "silent");
  QUIRE_EXPECT_OK(first.CheckStale(path()));
  EXPECT_EQ(first.stale_count(), 1U);
  first.Deny(path());
  EXPECT_EQ(first.stale_count(), 0U);
  EXPECT_FALSE(first.FindStale(path()).has_value());
  EXPECT_THAT(first.CheckStale(path()),
              HasCode(absl::StatusCode::kUnavailable));
  EXPECT_THAT(first.Check(path(), kChecksum),
              HasCode(absl::StatusCode::kUnavailable));
  EXPECT_THAT(CopyConfirmations(absl::Hours(1)).Check(path(), kChecksum),
              HasCode(absl::StatusCode::kUnavailable));
  // Also by a process that writes no confirmations.
  WriteConfirmation(absl::ZeroDuration());
  CopyConfirmations(absl::ZeroDuration()).Deny(path());
  EXPECT_FALSE(std::filesystem::exists(FileName()));
}

TEST_F(CopyConfirmationsTest, AConfirmationEndsStaleness) {
  CopyConfirmations copies(absl::Hours(1));
  WriteConfirmation(absl::Minutes(30));
  QUIRE_EXPECT_OK(copies.Check(path(), kChecksum));
  copies.SetStale(path(), "silent");
  copies.SetStale(path(), "still silent");
  EXPECT_EQ(copies.stale_count(), 1U);
  copies.Confirm(path(), kChecksum);
  EXPECT_EQ(copies.stale_count(), 0U);
  std::ifstream file(FileName());
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto written = ParseConfirmation(text, kChecksum);
  ASSERT_TRUE(written.has_value());
  EXPECT_LT(absl::Now() - *written, absl::Minutes(20));
  copies.Forget(path());
  EXPECT_EQ(copies.stale_count(), 0U);
}

TEST_F(CopyConfirmationsTest, WithoutALimitNothingIsWrittenOrStale) {
  CopyConfirmations copies(absl::ZeroDuration());
  EXPECT_FALSE(copies.are_wanted());
  copies.Confirm(path(), kChecksum);
  EXPECT_FALSE(std::filesystem::exists(FileName()));
}

TEST_F(CopyConfirmationsTest, RemembersASilentStoreUntilItAnswers) {
  CopyConfirmations copies(absl::Hours(1));
  copies.NoteSilence("s3://a", absl::UnavailableError("no connection"));
  EXPECT_FALSE(copies.RecentSilence("s3://b").has_value());
  EXPECT_EQ(copies.RecentSilence("s3://a"),
            absl::UnavailableError("no connection"));
  copies.NoteSilence("s3://a", absl::OkStatus());
  EXPECT_FALSE(copies.RecentSilence("s3://a").has_value());
}

}  // namespace
}  // namespace quire
