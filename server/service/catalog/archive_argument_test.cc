// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog/archive_argument.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "server/service/catalog/catalog.h"
#include "testing/base/status_matchers.h"
#include "testing/base/temporary_directory.h"

namespace quire {
namespace {

TEST(ArchiveArgumentTest, TakesNameAndPath) {
  const struct {
    const char* text;
    const char* name;
    const char* path;
  } cases[] = {{"docs.quire", "docs", "docs.quire"},
               {"/srv/a.b.quire/", "a.b", "/srv/a.b.quire/"},
               {"web=/srv/x.quire", "web", "/srv/x.quire"},
               {"./odd=name/docs", "docs", "./odd=name/docs"},
               {"a=b=c", "a", "b=c"}};

  for (const auto& c : cases) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveArgument argument,
                               ParseArchiveArgument(c.text));
    EXPECT_EQ(argument.name, c.name) << c.text;
    EXPECT_EQ(argument.path, c.path) << c.text;
  }
  for (const char* bad : {"", "=x", "name=", "a b=x", "dir/a b.quire", "/", ".",
                          "..", "dir/..", ".=x", "..=x", "...quire"}) {
    EXPECT_THAT(ParseArchiveArgument(bad),
                HasCode(absl::StatusCode::kInvalidArgument))
        << bad;
  }
}

TEST(FindArchivesTest, TakesDirectoriesThatLookLikeArchives) {
  namespace fs = std::filesystem;
  const TemporaryDirectory made;
  const std::string& scratch = made.path();
  const fs::path directory = scratch;
  const auto names = [&] {
    std::vector<std::string> found;
    const auto archives = FindArchives(scratch);
    QUIRE_EXPECT_OK(archives);
    for (const ArchiveArgument& archive : archives->archives) {
      found.push_back(archive.name);
      EXPECT_EQ(fs::path(archive.path).parent_path(), directory);
    }
    return found;
  };
  EXPECT_THAT(names(), ::testing::ElementsAre());
  for (const char* name : {"web.quire", "docs", "empty", ".hidden.quire",
                           "docs.quire.partial", "target"}) {
    fs::create_directory(directory / name);
  }
  std::ofstream(directory / "docs/MANIFEST") << "x";
  std::ofstream(directory / ".hidden.quire/MANIFEST") << "x";
  // A build that was stopped after its last file.
  std::ofstream(directory / "docs.quire.partial/MANIFEST") << "x";
  std::ofstream(directory / "file.quire") << "x";
  fs::create_directory_symlink(directory / "target", directory / "b.quire");
  fs::create_directory_symlink(directory / "nowhere", directory / "c.quire");
  EXPECT_THAT(names(), ::testing::ElementsAre("b", "docs", "web"));

  fs::create_directory(directory / "docs.quire");
  EXPECT_THAT(FindArchives(scratch),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        ::testing::HasSubstr("two archives are named")));
  fs::remove(directory / "docs.quire");
  fs::create_directory(directory / "a b.quire");
  EXPECT_THAT(FindArchives(scratch),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        ::testing::HasSubstr("a b.quire")));
  fs::remove_all(directory);
  EXPECT_THAT(FindArchives(scratch), HasCode(absl::StatusCode::kNotFound));
}

// All of it is the path, also where it looks like NAME=PATH.
TEST(FindArchivesTest, TakesPathsWithAnEqualsSign) {
  namespace fs = std::filesystem;
  const TemporaryDirectory scratch;
  const fs::path before = fs::current_path();
  fs::current_path(scratch.path());
  fs::create_directories("a=b/docs.quire");
  const auto found = FindArchives("a=b");
  fs::current_path(before);
  QUIRE_ASSERT_OK(found);
  ASSERT_EQ(found->archives.size(), 1u);
  EXPECT_EQ(found->archives[0].name, "docs");
  EXPECT_EQ(found->archives[0].path, "a=b/docs.quire");
}

TEST(ArchiveArgumentTest, NoArchiveHasTheNameOfOthers) {
  EXPECT_THAT(ParseArchiveArgument(absl::StrCat(kOtherArchives, "=/a.quire")),
              HasCode(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace quire
