// SPDX-License-Identifier: GPL-3.0-or-later
//
// Archives that have an encoding and no documents, and parts that are built
// like them: with every codec and order, and killed.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "server/archive/archive.h"
#include "server/archive/format/archive_format.h"
#include "server/ingest/append.h"
#include "server/ingest/build_pipeline.h"
#include "server/ingest/testing/build_testing.h"
#include "server/ingest/testing/memory_source.h"
#include "testing/archive/system_call_hooks.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/test_codec.h"

namespace quire {
namespace {

BuildOptions LikeOptions(absl::string_view codec) {
  BuildOptions options = SmallBuildOptions(codec);
  options.archive.replace = true;
  return options;
}

IdsAndContents LikeDocuments() {
  IdsAndContents documents;
  for (size_t i = 0; i < 12; ++i) {
    documents.emplace_back(absl::StrCat("page-", i),
                           MakeTestText((i * 3779) % 12000, i / 2));
  }
  documents.emplace_back("gzip", Gzip(MakeTestText(3000, 3)));
  return documents;
}

std::map<std::string, std::string> FilesWithoutManifest(
    const std::string& path) {
  auto files = FilesOf(path);
  files.erase(kManifestFileName);
  return files;
}

class BuildLikeTest : public ::testing::Test {
 protected:
  absl::Status MakeLike(const BuildOptions& options) const {
    return BuildEmptyArchive(like_, OneSource(LikeDocuments()), options)
        .status();
  }

  absl::Status MakePart(const BuildOptions& options,
                        std::optional<uint32_t> first = std::nullopt) const {
    return BuildLike(like_, first, part_, OneSource(LikeDocuments()), options)
        .status();
  }

  void ExpectWholePart() const { ExpectDocuments(part_, LikeDocuments()); }

  const TemporaryDirectory directory_;
  const std::string like_ = directory_ / "like";
  const std::string part_ = directory_ / "part";
};

// A part of all documents is their archive.
TEST_F(BuildLikeTest, OnePartEqualsABuild) {
  for (const absl::string_view codec :
       {"copy", "zstd:1", "rlz:2", "auto", "fsst", "rlz:1/parts",
        "auto/inflate"}) {
    for (const ReorderMode reorder :
         {ReorderMode::kOff, ReorderMode::kAuto, ReorderMode::kDuplicates}) {
      SCOPED_TRACE(absl::StrCat(codec, " ", ReorderModeName(reorder)));
      BuildOptions options = LikeOptions(codec);
      options.reorder = reorder;
      const std::string one = directory_ / "one";
      QUIRE_ASSERT_OK(BuildArchive(one, OneSource(LikeDocuments()), options));
      QUIRE_ASSERT_OK(MakeLike(options));
      QUIRE_ASSERT_OK_AND_ASSIGN(const auto like, Archive::Open(like_));
      QUIRE_ASSERT_OK_AND_ASSIGN(const auto whole, Archive::Open(one));
      EXPECT_EQ(like->info().document_count, 0u);
      EXPECT_EQ(like->info().choice, whole->info().choice);
      EXPECT_TRUE(like->info().found_members.empty());
      // Whatever its options say.
      BuildOptions part = options;
      part.archive.codec = ParseTestCodec("copy").spec;
      part.archive.block_size_bytes = 16384;
      QUIRE_ASSERT_OK(MakePart(part));
      ASSERT_NO_FATAL_FAILURE(ExpectWholePart());
      EXPECT_TRUE(FilesWithoutManifest(part_) == FilesWithoutManifest(one));
      QUIRE_ASSERT_OK_AND_ASSIGN(const auto built, Archive::Open(part_));
      EXPECT_EQ(built->info().uuid, whole->info().uuid);
      EXPECT_EQ(built->info().found_members, whole->info().found_members);
    }
  }
}

TEST_F(BuildLikeTest, NumbersSegmentsFromTheGivenOne) {
  QUIRE_ASSERT_OK(MakeLike(LikeOptions("rlz:1")));
  QUIRE_ASSERT_OK(MakePart(LikeOptions("rlz:1"), 700));
  ASSERT_NO_FATAL_FAILURE(ExpectWholePart());
  EXPECT_TRUE(std::filesystem::exists(part_ + "/segment-00000701"));
  // After the last number there is none.
  EXPECT_THAT(MakePart(LikeOptions("rlz:1"), kSegmentNumberMax),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        ::testing::HasSubstr("all segment numbers")));
  ASSERT_NO_FATAL_FAILURE(ExpectWholePart());
}

TEST_F(BuildLikeTest, AKillAtAnySystemCallLeavesNothingOrThePart) {
  const BuildOptions options = LikeOptions("rlz:1");
  QUIRE_ASSERT_OK(MakeLike(options));
  int none_count = 0;
  bool has_ended = false;
  for (int call = 0; !has_ended; ++call) {
    SCOPED_TRACE(call);
    std::filesystem::remove_all(part_);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const ScopedSystemCallHooks hooks(KillBefore(call));
      _exit(MakePart(options).ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    has_ended = WIFEXITED(status);
    ASSERT_TRUE(has_ended ? WEXITSTATUS(status) == 0
                          : WTERMSIG(status) == SIGKILL);
    if (std::filesystem::exists(part_)) {
      ASSERT_NO_FATAL_FAILURE(ExpectWholePart());
    } else {
      ++none_count;
    }
    QUIRE_ASSERT_OK(Archive::Open(like_));
  }
  EXPECT_GT(none_count, 10);
  EXPECT_TRUE(std::filesystem::exists(part_));
  EXPECT_FALSE(std::filesystem::exists(part_ + ".partial"));
}

}  // namespace
}  // namespace quire
