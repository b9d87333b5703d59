// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/id_rules.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"

namespace quire {
namespace {

bool Excludes(const std::string& glob, absl::string_view path) {
  const auto rules = IdRules::Create({.exclude_globs = {glob}});
  EXPECT_THAT(rules, IsOk()) << glob;
  return rules.ok() && (*rules)->Excludes(path);
}

TEST(IdRulesTest, ExcludesAsRsyncDoes) {
  struct Case {
    const char* glob;
    std::vector<std::string> excluded;
    std::vector<std::string> kept;
  };

  const std::vector<Case> cases = {
      {"*.png",
       {"a.png", "x/a.png", "x/.png", "http://host/i/a.png", "d.png/file"},
       {"a.png2", "png", "a.png.txt"}},
      {".git", {".git/config", "x/.git/a", ".git"}, {".gitignore", "x.git"}},
      {"/build", {"build", "build/a"}, {"x/build", "builds", "rebuild"}},
      {"build/", {"build/", "build/a", "x/build/a"}, {"build", "x/build"}},
      {"doc/*.txt", {"doc/a.txt", "x/doc/a.txt"}, {"doc/x/a.txt", "a.txt"}},
      {"doc/**/*.txt", {"doc/a.txt", "doc/x/y/a.txt"}, {"doca.txt", "a.txt"}},
      {"**/x", {"x", "a/x", "a/b/x", "x/y"}, {"ax", "xa", "a/bx"}},
      {"/**/x", {"x", "a/x", "a/b/x"}, {"ax", "a/bx"}},
      {"**/x/", {"x/", "x/a", "a/x/"}, {"x", "a/x", "ax/"}},
      {"/a/**", {"a/b", "a/b/c"}, {"a", "x/a/b"}},
      {"file?", {"file1", "x/filex/y"}, {"file", "file/", "file12"}},
      {"[a-c].txt", {"a.txt", "x/c.txt"}, {"d.txt", "ab.txt"}},
      {"[!a-c].txt", {"d.txt", "x/-.txt"}, {"a.txt", "/.txt"}},
      {"[]x]", {"]", "x"}, {"y"}},
      {"\\*", {"*", "x/*"}, {"a"}},
      {"a+(b).c|d", {"a+(b).c|d"}, {"aab", "d"}},
      {"\xFF*", {"\xFF\xFE", "x/\xFF"}, {"\xFE"}},
      {"a\nb", {"a\nb"}, {"a"}},
  };
  for (const Case& c : cases) {
    for (const std::string& path : c.excluded) {
      EXPECT_TRUE(Excludes(c.glob, path)) << c.glob << " " << path;
    }
    for (const std::string& path : c.kept) {
      EXPECT_FALSE(Excludes(c.glob, path)) << c.glob << " " << path;
    }
  }
}

TEST(IdRulesTest, ExcludesByAnyOfItsPatterns) {
  const auto rules = IdRules::Create({.exclude_globs = {"*.a", "/b/", "c|d"}});
  ASSERT_THAT(rules, IsOk());
  for (const char* path : {"x.a", "b/x", "c|d"}) {
    EXPECT_TRUE((*rules)->Excludes(path)) << path;
  }
  for (const char* path : {"b", "c", "d", "x/b/x", ""}) {
    EXPECT_FALSE((*rules)->Excludes(path)) << path;
  }
}

TEST(IdRulesTest, RefusesMalformedPatterns) {
  for (const char* glob : {"", "/", "//", "//a", "a//", "[a", "[", "[z-a]"}) {
    EXPECT_THAT(IdRules::Create({.exclude_globs = {glob}}),
                FailsWith(absl::StatusCode::kInvalidArgument,
                          ::testing::HasSubstr("--exclude \"")))
        << glob;
  }
}

TEST(IdRulesTest, TakesNoMoreThanLinearTime) {
  // Backtracking would never end.
  std::string glob;
  for (int i = 0; i < 30; ++i) {
    glob += "**/a*";
  }
  std::string path;
  for (int i = 0; i < 30000; ++i) {
    path += "a/";
  }
  EXPECT_FALSE(Excludes(glob + "b", path));
}

TEST(IdRulesTest, Renames) {
  const auto rules =
      IdRules::Create({.strip_prefix = "build/html/", .prefix = "manual/"});
  ASSERT_THAT(rules, IsOk());
  EXPECT_EQ((*rules)->Rename("build/html/a"), "manual/a");
  EXPECT_EQ((*rules)->Rename("build/html/"), "manual/");
  EXPECT_EQ((*rules)->Rename("x/build/html/a"), "manual/x/build/html/a");
  EXPECT_FALSE((*rules)->Excludes("a"));
}

}  // namespace
}  // namespace quire
