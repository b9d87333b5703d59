// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/withdrawal_file.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(WithdrawalFileTest, ParsesRules) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto lines,
      ParseWithdrawals("# comment\n"
                       "\n"
                       "docs id http://example.org/a%20b exclude\n"
                       "  web-*\tprefix  a b\\\\c\\x00 \t block\r\n"
                       "docs id exclude block\n"
                       "docs id \\x20a\\\\X \\x4A4\\x20bad block"));
  ASSERT_THAT(lines, SizeIs(4));
  EXPECT_EQ(lines[0].archive_glob, "docs");
  EXPECT_EQ(lines[0].rule.kind, WithdrawalRule::Kind::kId);
  EXPECT_EQ(lines[0].rule.value, "http://example.org/a%20b");
  EXPECT_EQ(lines[0].rule.action, Withdrawal::kExclude);
  EXPECT_EQ(lines[1].archive_glob, "web-*");
  EXPECT_EQ(lines[1].rule.kind, WithdrawalRule::Kind::kPrefix);
  EXPECT_EQ(lines[1].rule.value, std::string("a b\\c\0", 6));
  EXPECT_EQ(lines[1].rule.action, Withdrawal::kBlock);
  EXPECT_EQ(lines[2].rule.value, "exclude");
  EXPECT_EQ(lines[2].rule.action, Withdrawal::kBlock);
  EXPECT_EQ(lines[3].rule.value, " a\\X J4 bad");
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto none, ParseWithdrawals(""));
  EXPECT_THAT(none, IsEmpty());
}

// As quire ls prints documents that share an id.
TEST(WithdrawalFileTest, ANumberOfADocumentMeansAllOfItsId) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto lines,
                             ParseWithdrawals("docs id a b\t@12 block\n"
                                              "docs id a\\x09@1\texclude\n"
                                              "docs id a\t@1\t@0 block\n"
                                              "docs id a\t@x block\n"
                                              "docs prefix a\t@1 block\n"));
  ASSERT_THAT(lines, SizeIs(5));
  EXPECT_EQ(lines[0].rule.value, "a b");
  EXPECT_TRUE(lines[0].has_occurrence);
  EXPECT_EQ(lines[1].rule.value, "a\t@1");
  EXPECT_FALSE(lines[1].has_occurrence);
  EXPECT_EQ(lines[2].rule.value, "a\t@1");
  EXPECT_TRUE(lines[2].has_occurrence);
  EXPECT_EQ(lines[3].rule.value, "a\t@x");
  EXPECT_EQ(lines[4].rule.value, "a\t@1");
  EXPECT_FALSE(lines[4].has_occurrence);
}

// Ids can begin and end with blanks, and files can have columns.
TEST(WithdrawalFileTest, BlanksAroundAValueMayBePartOfIt) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto lines,
                             ParseWithdrawals("docs id  a\t block\n"
                                              "docs id \t@0 block\n"
                                              "docs prefix a b exclude\n"));
  ASSERT_THAT(lines, SizeIs(3));
  EXPECT_EQ(lines[0].rule.value, "a");
  EXPECT_EQ(lines[0].value_with_blanks, " a\t");
  // The empty id, as quire ls prints it.
  EXPECT_EQ(lines[1].rule.value, "@0");
  EXPECT_EQ(lines[1].value_with_blanks, "");
  EXPECT_TRUE(lines[1].has_occurrence);
  EXPECT_FALSE(lines[2].value_with_blanks.has_value());
}

TEST(WithdrawalFileTest, ParsesFilters) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto lines,
      ParseWithdrawals("docs where lang = \"de\" and time < 2020-01-01 block\n"
                       "web-* where   id prefix 'a exclude' \t exclude\r\n"
                       "docs where x='\\x00\\\\' block"));
  ASSERT_THAT(lines, SizeIs(3));
  EXPECT_EQ(lines[0].rule.kind, WithdrawalRule::Kind::kWhere);
  EXPECT_EQ(lines[0].rule.value, "lang = \"de\" and time < 2020-01-01");
  EXPECT_THAT(lines[0].rule.filter->names(),
              ::testing::ElementsAre("lang", "time"));
  EXPECT_EQ(lines[0].rule.action, Withdrawal::kBlock);
  EXPECT_EQ(lines[0].rule.line_number, 1u);
  EXPECT_EQ(lines[1].rule.filter->text(), "id prefix 'a exclude'");
  EXPECT_EQ(lines[1].rule.action, Withdrawal::kExclude);
  EXPECT_FALSE(lines[1].value_with_blanks.has_value());
  // Escapes are those of filters.
  EXPECT_EQ(lines[2].rule.value, "x='\\x00\\\\'");
  EXPECT_EQ(lines[2].rule.line_number, 3u);
}

TEST(WithdrawalFileTest, ParsesShortForms) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto lines,
      ParseWithdrawals("web-*  domain  news.test 2019..2021 \t block\n"
                       "web status 404 host b.test exclude\r\n"));
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[0].rule.kind, WithdrawalRule::Kind::kWhere);
  EXPECT_EQ(lines[0].rule.value,
            "domain \"news.test\" and time >= 2019-01-01T00:00:00Z and "
            "time < 2022-01-01T00:00:00Z");
  EXPECT_EQ(lines[0].rule.action, Withdrawal::kBlock);
  EXPECT_FALSE(lines[0].value_with_blanks.has_value());
  EXPECT_EQ(lines[1].rule.filter->text(), "status = 404 and host \"b.test\"");
  EXPECT_EQ(lines[1].rule.action, Withdrawal::kExclude);
}

TEST(WithdrawalFileTest, WarnsOfNumbersOfDocuments) {
  const std::string path = ::testing::TempDir() + "/withdrawal_file_test.n";
  std::ofstream(path) << "docs id a block\ndocs id b\t@0 block\n"
                         "docs id b\t@1 block\n";
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto file, WithdrawalFile::Open(path));
  const std::vector<LogLine> said = file->Describe(Catalog());
  ASSERT_GT(said.size(), 1u);
  EXPECT_EQ(said[1].level, LogLevel::kWarning);
  EXPECT_THAT(std::string(said[1].text),
              HasSubstr("line 2 names one document of an id by a tab and @N, "
                        "and withdraws all of them; 1 more line does too"));
  std::filesystem::remove(path);
}

TEST(WithdrawalFileTest, NamesTheLineAndTheFault) {
  const std::pair<std::string, const char*> cases[] = {
      {"docs",
       "a rule must be ARCHIVES id|prefix VALUE exclude|block, ARCHIVES "
       "where FILTER exclude|block, or a short form such as ARCHIVES domain "
       "news.test 2019..2021 exclude|block, got \"docs\""},
      {"docs prefix exclude", "a rule must be"},
      {"docs name a exclude",
       "must be id, prefix, where, domain, host, digest, status or time, got "
       "\"name\""},
      {"docs domain *.news.test block", "found \"*.news.test\", expected"},
      {"docs domain news.test 2019..x block", "found \"x\", expected a time"},
      {"docs host block", "a rule must be"},
      {"docs id a remove", "must be exclude or block, got \"remove\""},
      {"docs id a\\q exclude", "after each backslash"},
      {"docs id a\\n exclude", "after each backslash"},
      {"docs id a\\x4 exclude", "after each backslash"},
      {"docs id a\\101 exclude", "after each backslash"},
      {"docs id a\\ exclude", "after each backslash"},
      {"docs id " + std::string(65536, 'x') + " block",
       "VALUE has 65536 bytes, ids have at most 65535"},
      {"docs where lang = \"de\"",
       "the last word must be exclude or block, got \"\\\"de\\\"\""},
      {"docs where exclude", "a rule must be"},
      {"docs where lang == 'de' block",
       "FILTER, column 7: found \"=\", expected "},
      {"docs where lang = block", "FILTER, column 7: found the end"},
      {"docs where " + std::string(20'000, ' ') +
           "n = 1 or n = " + std::string(17'000, '1') + " block",
       "FILTER, "}};
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(
        ParseWithdrawals("# comment\n" + text),
        FailsWith(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
    EXPECT_THAT(
        ParseWithdrawals("# comment\n" + text),
        FailsWith(absl::StatusCode::kInvalidArgument, HasSubstr("line 2: ")));
  }
}

TEST(WithdrawalFileTest, PlansTheMemoryOfRulesAndTheirCopies) {
  const std::string path = ::testing::TempDir() + "/withdrawal_file_test";
  const auto planned = [&](const std::vector<std::string>& names) {
    const auto file = WithdrawalFile::Open(path);
    EXPECT_THAT(file, IsOk());
    EXPECT_GT((*file)->HeldBytes(Catalog()), 0u);
    return (*file)->PlannedBytes(names);
  };
  std::string lines;
  for (int i = 0; i < 1000; ++i) {
    absl::StrAppend(&lines, "web-* id ", std::string(500, 'x'), i, " block\n");
  }
  std::ofstream(path) << lines;
  const uint64_t rules_bytes = planned({});
  EXPECT_GT(rules_bytes, 2 * 500'000u);
  EXPECT_LT(rules_bytes, 2 * 700'000u);
  EXPECT_EQ(planned({"docs"}), rules_bytes);
  const uint64_t copy_bytes = planned({"docs", "web-1"}) - rules_bytes;
  EXPECT_GT(copy_bytes, 2 * 500'000u);
  EXPECT_EQ(planned({"web-1", "web-2", "web-3"}), rules_bytes + 3 * copy_bytes);
  std::filesystem::remove(path);
}

TEST(WithdrawalFileTest, NamesAFileThatCannotBeRead) {
  EXPECT_THAT(WithdrawalFile::Open("/nonexistent/rules"),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("/nonexistent/rules")));
}

}  // namespace
}  // namespace quire
