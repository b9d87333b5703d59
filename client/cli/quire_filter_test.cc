// SPDX-License-Identifier: Apache-2.0
//
// quire ls and export of documents with fields: --fields and --where.
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/cli/testing/cli_fixture.h"
#include "client/quire/testing/fake_server.h"
#include "codecs/filter/field_value.h"

namespace quire {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Documents a, b, b, c and one that was removed.
FakeArchive Rows() {
  FakeArchive archive;
  archive.fields = {{"lang", FieldType::kString},
                    {"score", FieldType::kFloat},
                    {"seen", FieldType::kTime},
                    {"is_new", FieldType::kBoolean}};
  archive.documents = {
      {.id = "a",
       .text = "text of a",
       .fields = {std::string("de"), 0.5, *ParseFieldTime("2024-01-31"), true}},
      {.id = "b", .text = "first b", .fields = {std::string("fr\t\xff"), 1.0}},
      {.id = "b", .text = "second b", .fields = {FieldValue(), std::nan("")}},
      {.id = "c", .text = "text of c", .fields = {std::string("de"), 2.5}},
      {.id = "d", .text = "removed", .is_redacted = true}};
  return archive;
}

class QuireFilterTest : public CliTest {
 protected:
  QuireFilterTest() : CliTest({{"rows", Rows()}, {"plain", {}}}) {}
};

TEST_F(QuireFilterTest, DescribesFields) {
  EXPECT_THAT(Run({"info", "rows"}).out,
              HasSubstr("fields:      lang (string), score (float), seen "
                        "(time), is_new (boolean)\n"));
  EXPECT_THAT(
      Run({"info", "rows", "--json"}).out,
      HasSubstr("\"fields\":[{\"name\":\"lang\",\"type\":\"string\"},"));
}

TEST_F(QuireFilterTest, PrintsFields) {
  ProgramRun run = Run({"ls", "rows", "--fields", "score,lang"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out,
            "a\t0.5\tde\n"
            "b\t@0\t1.0\tfr\\x09\\xFF\n"
            "b\t@1\tnan\t-\n"
            "c\t2.5\tde\n");
  run = Run({"ls", "rows", "--json", "--fields", "lang,score", "--fields",
             "seen,is_new"});
  EXPECT_THAT(
      run.out,
      StartsWith("{\"id\":\"a\",\"ordinal\":0,\"offset\":0,\"size_bytes\""
                 ":9,\"fields\":{\"lang\":\"de\",\"score\":0.5,\"seen\":"
                 "\"2024-01-31T00:00:00Z\",\"is_new\":true}}\n"));
  EXPECT_THAT(run.out, HasSubstr("\"fields\":{\"lang_base64\":\"ZnIJ/w==\","
                                 "\"score\":1.0,\"seen\":null,"));
  EXPECT_THAT(run.out, HasSubstr("\"score\":\"NaN\""));
  run = Run({"ls", "-l", "rows", "a", "--fields", "lang"});
  EXPECT_THAT(run.out, HasSubstr("NUMBER  ID\tlang\n"));
  EXPECT_THAT(run.out, EndsWith("  a\tde\n"));
}

TEST_F(QuireFilterTest, SelectsDocuments) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"lang = 'de'", "a\nc\n"},
      {"lang = 'de' and score > 1", "c\n"},
      {"lang != 'de' or lang is null", "b\t@0\nb\t@1\n"},
      // The number among the documents of the id stays that of all.
      {"lang is null", "b\t@1\n"},
      {"seen >= 2024-01-31 and is_new = true", "a\n"},
      {"id prefix 'b' and ordinal < 2", "b\t@0\n"},
      {"size >= 9", "a\nc\n"}};
  for (const auto& [where, expected] : cases) {
    const ProgramRun run = Run({"ls", "rows", "--where", where});
    EXPECT_EQ(run.exit_code, 0) << where;
    EXPECT_EQ(run.out, expected) << where;
  }
  ProgramRun run = Run({"ls", "rows", "--json", "--where", "score = 1"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out,
            "{\"id\":\"b\",\"ordinal\":1,\"offset\":9,\"size_bytes\":7}\n");
  run =
      Run({"ls", "rows", "--where", "score > 1", "--record-type", "response"});
  EXPECT_EQ(run.exit_code, 1);
  for (const char* form : {"-0", "--json", "-l"}) {
    run = Run({"ls", "rows", form, "--where", "score > 100"});
    EXPECT_EQ(run.exit_code, 1) << form;
    EXPECT_THAT(run.err, HasSubstr("passes the filters")) << form;
  }
}

TEST_F(QuireFilterTest, ListsByShortRules) {
  // Only ids with a URL have a host.
  ProgramRun run = Run({"ls", "rows", "--rule", "domain news.test"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("passes the filters"));
  run = Run({"ls", "rows", "--where", "not domain 'news.test' and id = 'a'"});
  EXPECT_EQ(run.out, "a\n");
  run = Run({"ls", "rows", "--rule", "domain http://news.test/"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("expected the name of a host alone"));
  run = Run({"ls", "rows", "--rule", "time 2020", "--where", "id = 'a'"});
  EXPECT_EQ(run.exit_code, 2);
  run = Run({"ls", "rows", "--rule", "status 404"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("digest and status are those of captures"));
}

TEST_F(QuireFilterTest, ExportsSelectedDocuments) {
  const std::string tar = directory_ + "/some.tar";
  ProgramRun run =
      Run({"export", "rows", "--tar", tar, "--where", "lang = 'de'"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("exported 2 documents of 5"));
  const std::string files = directory_ + "/files";
  run = Run({"export", "rows", "--output-dir", files, "--where",
             "lang is null and id = 'b'"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(files)) {
    names.push_back(entry.path().filename());
  }
  EXPECT_THAT(names, ::testing::ElementsAre(HasSubstr("b")));
  run = Run({"export", "rows", "--tar", tar, "--where", "score > 100"});
  EXPECT_EQ(run.exit_code, 1);
}

TEST_F(QuireFilterTest, ExplainsErrors) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"ls", "rows", "--where", "lang = "},
       "--where: column 8: found the end of the filter, expected a value"},
      {{"ls", "rows", "--where", "lang = 1"},
       "--where: column 8: found a value of the type integer, expected string"},
      {{"ls", "rows", "--where", "language = 'de'"},
       "--where: column 1: no field \"language\"; expected a field of the "
       "archive or an attribute: lang, score, seen, is_new, id, "},
      {{"ls", "plain", "--where", "lang = 'de'"}, "no field \"lang\""},
      {{"export", "rows", "--tar", directory_ + "/x.tar", "--where", "1"},
       "--where: column 1: found \"1\", expected the name of a field"},
      {{"ls", "rows", "--fields", "no-name"},
       "--fields: the name of a field must have"}};
  for (const auto& [arguments, message] : cases) {
    const ProgramRun run = Run(arguments);
    EXPECT_EQ(run.exit_code, 2) << arguments.back();
    EXPECT_THAT(run.err, HasSubstr(message));
    EXPECT_EQ(run.out, "");
  }
  // The server finds this one.
  const ProgramRun run = Run({"ls", "rows", "--fields", "other"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("no field other"));
}

TEST_F(QuireFilterTest, NoticesServersWithoutFields) {
  FakeFaults faults;
  faults.knows_no_fields = true;
  server_->SetFaults(faults);
  ProgramRun run = Run({"ls", "rows", "--fields", "lang"});
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("does not know fields"));
  run = Run({"ls", "rows", "--json", "--where", "size > 1"});
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("does not know filters"));
  EXPECT_EQ(run.out, "");
  run = Run({"ls", "rows", "--where", "lang = 'de'"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("no field \"lang\""));
  // The program evaluates filters of attributes itself.
  EXPECT_EQ(Run({"ls", "rows", "--where", "size > 8"}).out, "a\nc\n");
}

}  // namespace
}  // namespace quire
