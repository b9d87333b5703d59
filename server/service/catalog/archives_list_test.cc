// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog/archives_list.h"

#include <fstream>
#include <string>

#include "gmock/gmock.h"

#include "testing/base/status_matchers.h"
#include "testing/base/temporary_directory.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ArchivesListTest, TakesWhatTheOptionTakes) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::vector<ArchiveArgument> archives,
      ParseArchivesList("# crawls\n"
                        "\n"
                        "docs.quire\r\n"
                        "  web=/data/with blanks.quire  \n"
                        "far=s3://bucket/far.quire\n"
                        "https://host/more.quire\n"
                        "last=a=b.quire",
                        "/lists"));
  ASSERT_EQ(archives.size(), 5u);
  EXPECT_EQ(archives[0].name, "docs");
  EXPECT_EQ(archives[0].path, "/lists/docs.quire");
  EXPECT_EQ(archives[1].name, "web");
  EXPECT_EQ(archives[1].path, "/data/with blanks.quire");
  EXPECT_EQ(archives[2].url, "s3://bucket/far.quire");
  EXPECT_EQ(archives[2].path, "");
  EXPECT_EQ(archives[3].name, "more");
  EXPECT_EQ(archives[4].path, "/lists/a=b.quire");
  for (const ArchiveArgument& archive : archives) {
    EXPECT_TRUE(archive.is_listed);
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<ArchiveArgument> none,
                             ParseArchivesList("", ""));
  EXPECT_TRUE(none.empty());
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<ArchiveArgument> here,
                             ParseArchivesList("a", ""));
  EXPECT_EQ(here.at(0).path, "a");
}

TEST(ArchivesListTest, NamesEveryFaultWithItsLine) {
  EXPECT_THAT(
      ParseArchivesList("a\n"
                        "=x\n"
                        "# b\n"
                        "na me=x\n"
                        "b=\n"
                        "s3:///nobucket\n"
                        "a=/other\n"
                        "c\n",
                        ""),
      FailsWith(absl::StatusCode::kInvalidArgument,
                AllOf(HasSubstr("line 2: \"\" cannot be an archive's name"),
                      HasSubstr("line 4: \"na me\" cannot be"),
                      HasSubstr("line 5: \"b=\" names no archive"),
                      HasSubstr("line 6: "), HasSubstr("names no bucket"),
                      HasSubstr("line 7: the name a is that of line 1, too"),
                      Not(HasSubstr("line 8")), Not(HasSubstr("more")))));
  std::string many;
  for (int i = 0; i < 50; ++i) {
    many += "=x\n";
  }
  EXPECT_THAT(
      ParseArchivesList(many, ""),
      FailsWith(absl::StatusCode::kInvalidArgument,
                AllOf(HasSubstr("line 20: "), Not(HasSubstr("line 21: ")),
                      HasSubstr("; and 30 more"))));
  EXPECT_THAT(ParseArchivesList(std::string("a\0b", 3), ""),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        HasSubstr("must be a text file")));
}

TEST(ArchivesListTest, NamesTheFile) {
  const TemporaryDirectory directory;
  const std::string path = directory / "archives";
  EXPECT_THAT(ReadArchivesList(path),
              FailsWith(absl::StatusCode::kInvalidArgument, HasSubstr(path)));
  std::ofstream(path) << "docs.quire\n=x\n";
  EXPECT_THAT(ReadArchivesList(path),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        HasSubstr(path + ": line 2: ")));
  std::ofstream(path) << "docs.quire\n";
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<ArchiveArgument> archives,
                             ReadArchivesList(path));
  EXPECT_EQ(archives.at(0).path, directory / "docs.quire");
}

}  // namespace
}  // namespace quire
