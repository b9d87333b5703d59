// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

#include "server/ingest/sources/lines/csv_fields.h"
#include "server/ingest/sources/lines/json_fields.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"

#include "nlohmann/json.hpp"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using State = RecordField::State;

// The value of a field; or the state, or the error.
std::string JsonField(absl::string_view text, const RecordField& wanted) {
  std::vector<RecordField> fields = {wanted};
  const absl::Status status = ReadJsonFields(text, absl::MakeSpan(fields));
  if (!status.ok()) {
    return std::string(status.message());
  }
  return fields[0].state == State::kFound       ? "=" + fields[0].value
         : fields[0].state == State::kMalformed ? fields[0].value
         : fields[0].state == State::kMissing   ? "missing"
                                                : "wrong type";
}

std::string JsonId(absl::string_view text) {
  return JsonField(text, {.name = "id"});
}

// The problem that was tolerated; or the error.
std::string Tolerated(absl::string_view text) {
  std::vector<RecordField> fields = {{.name = "id"}};
  std::string tolerated = "of the record before";
  const absl::Status status =
      ReadJsonFields(text, absl::MakeSpan(fields), &tolerated);
  if (status.ok() && fields[0].state == State::kMalformed) {
    return "error: " + fields[0].value;
  }
  EXPECT_EQ(fields[0].value, status.ok() ? "x" : fields[0].value) << text;
  return status.ok() ? tolerated : "error: " + std::string(status.message());
}

TEST(JsonFieldsTest, FindsStringsAndNumbers) {
  EXPECT_EQ(JsonId(R"({"id":"a"})"), "=a");
  EXPECT_EQ(JsonId(" {\"a\" : 1 , \"id\" : \"b\"}\r\n"), "=b");
  EXPECT_EQ(JsonId(R"({"id":""})"), "=");
  EXPECT_EQ(JsonId(R"({"id":17})"), "=17");
  EXPECT_EQ(JsonId(R"({"id":-1.50e+3})"), "=-1.50e+3");
  EXPECT_EQ(JsonId(R"({"id":"\"\\\/\b\f\n\r\tA\u00e9\u20AC\ud83d\ude00"})"),
            "=\"\\/\b\f\n\r\tA\u00e9\u20ac\U0001F600");
  EXPECT_EQ(JsonId(R"({"i\u0064":"escaped name"})"), "=escaped name");
  EXPECT_EQ(JsonId(R"({"id":"first","id":"last"})"), "=last");
  EXPECT_EQ(JsonId(R"({"id":"first","id":null})"), "wrong type");
}

TEST(JsonFieldsTest, FindsOnlyMembersOfTheObjectItself) {
  EXPECT_EQ(JsonId("{}"), "missing");
  EXPECT_EQ(JsonId(R"({"a":{"id":"x"},"b":[{"id":"y"}]})"), "missing");
  for (const char* value : {"null", "true", "false", "{}", "[]", "[1]"}) {
    EXPECT_EQ(JsonId(absl::StrCat(R"({"id":)", value, "}")), "wrong type");
  }
}

TEST(JsonFieldsTest, FindsMembersByPath) {
  const auto find = [](absl::string_view text) {
    return JsonField(text, {.name = "meta.ip"});
  };
  EXPECT_EQ(find(R"({"meta":{"a":{"ip":1},"ip":"x"}})"), "=x");
  EXPECT_EQ(find(R"({"ip":1,"meta":{"meta.ip":2,"meta":{"ip":3}}})"),
            "missing");
  EXPECT_EQ(find(R"({"meta":[{"ip":1}]})"), "missing");
  EXPECT_EQ(find(R"({"meta":{"ip":{}}})"), "wrong type");
  EXPECT_EQ(find(R"({"m\u0065ta":{"i\u0070":7}})"), "=7");
  // The last object of the name counts, and a member of the whole name most.
  EXPECT_EQ(find(R"({"meta":{"ip":1},"meta":{"ip":2}})"), "=2");
  EXPECT_EQ(find(R"({"meta":{"ip":1},"meta":{}})"), "missing");
  EXPECT_EQ(find(R"({"meta":{"ip":1},"meta":null})"), "missing");
  EXPECT_EQ(find(R"({"meta.ip":"whole","meta":{"ip":1}})"), "=whole");
  EXPECT_EQ(find(R"({"meta":{"ip":1},"meta.ip":"whole"})"), "=whole");
  EXPECT_EQ(JsonField(R"({"a.b":{"c":1}})", {.name = "a.b.c"}), "=1");
  EXPECT_EQ(JsonField(R"({"a":{"":{"c":1}}})", {.name = "a..c"}), "=1");
  std::vector<RecordField> fields = {{.name = "a.id"},
                                     {.name = "a", .takes_any = true}};
  QUIRE_ASSERT_OK(
      ReadJsonFields(R"({"a": {"id" : 5, "b":[1]} })", absl::MakeSpan(fields)));
  EXPECT_EQ(fields[0].value, "5");
  EXPECT_EQ(fields[1].value, R"({"id" : 5, "b":[1]})");
  std::string path = "a";
  std::string nested = "1";
  for (int i = 0; i < 2 * kJsonDepthMax; ++i) {
    path += ".a";
    nested = absl::StrCat(R"({"a":)", nested, "}");
  }
  EXPECT_EQ(JsonField(nested, {.name = path}), "missing");
}

TEST(JsonFieldsTest, TakesAnyValueAsItIsWritten) {
  const auto find = [](absl::string_view value) {
    return JsonField(absl::StrCat(R"({"t": )", value, R"( ,"u":1})"),
                     {.name = "t", .takes_any = true});
  };
  for (const char* value : {"[1, \"\\u00e9\",{}]", R"({"a" : "b"})", "[NaN]",
                            "true", "false", "-1.0"}) {
    EXPECT_EQ(find(value), absl::StrCat("=", value));
  }
  EXPECT_EQ(find(R"("\u00e9")"), "=\u00e9");
  EXPECT_EQ(find("null"), "wrong type");
  EXPECT_THAT(find("NaN"), HasSubstr("a value"));
}

// A malformed unused member costs no record its id, if its end is certain.
TEST(JsonFieldsTest, ToleratesMalformedMembersThatAreNoFields) {
  for (const char* value :
       {"NaN", "-Infinity", "01", "1.", "+1", "\"a\tb\"", "\"\x01\"",
        "\"\xFF\"", "\"\\x\"", "\"\\ud83d\"", "\"\\\"\\q\"",
        "{\"a\":NaN,\"id\":\"no\"}", "[1,]", "[1 2]", "{\"a\" 1}", "{,}",
        "[[[\"]\\q\"]]]", "{\"\\q\":1}", "undefined"}) {
    EXPECT_THAT(Tolerated(absl::StrCat(R"({"a":)", value, R"(,"id":"x"})")),
                HasSubstr("is not JSON: expected "))
        << value;
    EXPECT_THAT(Tolerated(absl::StrCat(R"({"id":"x" , "a": )", value, " } ")),
                HasSubstr("is not JSON: expected "))
        << value;
  }
  EXPECT_THAT(Tolerated("{\"\t\":1,\"id\":\"x\"}"), HasSubstr("at byte 3"));
  EXPECT_EQ(Tolerated(R"({"a":[{}],"id":"x"})"), "");
  // Where it ends is not certain.
  for (const char* value :
       {"\"he said \"hi\"\"", "[1", "[1}", "{\"a\":1]", "}", "\"a", "\"a\\",
        "1 2", "", ",", "\"a\"b", "NaN\"x\"", "[1]]"}) {
    EXPECT_THAT(Tolerated(absl::StrCat(R"({"a":)", value, R"(,"id":"x"})")),
                StartsWith("error: is not JSON: "))
        << value;
  }
  EXPECT_THAT(Tolerated("{id:\"x\"}"), StartsWith("error: "));
  EXPECT_THAT(Tolerated("{\"id\":\"x\",\"id\":\"\t\"}"), StartsWith("error: "));
}

// A malformed field leaves the others, and of equal names the last counts.
TEST(JsonFieldsTest, ReadsFieldsNextToMalformedOnes) {
  for (const char* value : {"NaN", "01", "-", "\"a\tb\"", "\"\xFF\"",
                            "\"\\ud83d\"", "\"\\x\"", "undefined"}) {
    std::vector<RecordField> fields = {{.name = "id"},
                                       {.name = "a.t", .takes_any = true}};
    QUIRE_ASSERT_OK(
        ReadJsonFields(absl::StrCat(R"({"id":)", value, R"(,"a":{"t":"x"}})"),
                       absl::MakeSpan(fields)));
    EXPECT_EQ(fields[0].state, State::kMalformed) << value;
    EXPECT_THAT(fields[0].value, StartsWith("is not JSON: expected "));
    EXPECT_EQ(fields[1].value, "x") << value;
    QUIRE_ASSERT_OK(ReadJsonFields(
        absl::StrCat(R"({"a":{"t":)", value, R"( } , "id":"y"})"),
        absl::MakeSpan(fields)));
    EXPECT_EQ(fields[0].value, "y") << value;
    EXPECT_EQ(fields[1].state, State::kMalformed) << value;
    EXPECT_THAT(Tolerated(absl::StrCat(R"({"id":)", value, R"(,"id":"x"})")),
                StartsWith("is not JSON: expected "));
  }
  // A field in a malformed object.
  std::vector<RecordField> fields = {{.name = "id"}, {.name = "a.t"}};
  QUIRE_ASSERT_OK(
      ReadJsonFields(R"({"a":{"t":"x",},"id":"y"})", absl::MakeSpan(fields)));
  EXPECT_EQ(fields[0].value, "y");
  EXPECT_EQ(fields[1].value, "x");
  EXPECT_THAT(JsonId(R"({"id":"he said "hi"","a":1})"),
              HasSubstr("expected a comma"));
}

TEST(JsonFieldsTest, ReadsSeveralFields) {
  std::vector<RecordField> fields = {{.name = "id"}, {.name = "text"}};
  QUIRE_ASSERT_OK(
      ReadJsonFields(R"({"text":"t","id":1})", absl::MakeSpan(fields)));
  EXPECT_EQ(fields[0].value, "1");
  EXPECT_EQ(fields[1].value, "t");
  // Nothing stays of the record before.
  QUIRE_ASSERT_OK(ReadJsonFields("{}", absl::MakeSpan(fields)));
  EXPECT_EQ(fields[0].state, State::kMissing);
  EXPECT_EQ(fields[1].state, State::kMissing);
}

TEST(JsonFieldsTest, NamesWhatIsMalformed) {
  EXPECT_THAT(JsonId(""), HasSubstr("an object, which begins with {"));
  EXPECT_THAT(JsonId("[]"), HasSubstr("at byte 1, found \"[]\""));
  EXPECT_THAT(JsonId(R"({"id":1}x)"), HasSubstr("the end of the line"));
  EXPECT_THAT(JsonId(R"({"id":1)"), HasSubstr("a comma or }"));
  EXPECT_THAT(JsonId(R"({"id":01})"), HasSubstr("a comma or }"));
  EXPECT_THAT(JsonId(R"({"id":1.})"), HasSubstr("a digit"));
  EXPECT_THAT(JsonId(R"({"id":"a)"), HasSubstr("the end of a string"));
  EXPECT_THAT(JsonId("{\"id\":\"\x01\"}"), HasSubstr("no control character"));
  EXPECT_THAT(JsonId("{\"id\":\"\xFF\"}"), HasSubstr("in UTF-8"));
  EXPECT_THAT(JsonId(R"({"id":"\x"})"), HasSubstr("after a backslash"));
  EXPECT_THAT(JsonId(R"({"id":"\u12g4"})"), HasSubstr("hexadecimal"));
  EXPECT_THAT(JsonId(R"({"id":"\ud83d"})"), HasSubstr("second half"));
  EXPECT_THAT(JsonId(R"({"id":"\ude00"})"), HasSubstr("first half"));
  EXPECT_THAT(JsonId(R"({"id":tru})"), HasSubstr("a value"));
  EXPECT_THAT(JsonId(R"({1:2})"), HasSubstr("a string"));
  EXPECT_THAT(JsonId(R"({"a" 1})"), HasSubstr("a colon"));
}

TEST(JsonFieldsTest, BoundsDepth) {
  const auto nested = [](size_t depth) {
    return absl::StrCat(R"({"id":1,"a":)", std::string(depth - 1, '['),
                        std::string(depth - 1, ']'), "}");
  };
  EXPECT_EQ(JsonId(nested(kJsonDepthMax)), "=1");
  for (const size_t depth : {size_t{kJsonDepthMax} + 1, size_t{1'000'000}}) {
    std::vector<RecordField> fields = {{.name = "id"}};
    std::string tolerated;
    QUIRE_EXPECT_OK(
        ReadJsonFields(nested(depth), absl::MakeSpan(fields), &tolerated));
    EXPECT_EQ(fields[0].value, "1");
    EXPECT_THAT(tolerated, HasSubstr("at most 256"));
  }
}

// Accepts without tolerance the texts that another parser accepts, with the
// same value.
TEST(JsonFieldsTest, AgreesWithAnotherParser) {
  constexpr uint32_t kSeed = 20261125;
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  std::mt19937 random(kSeed);
  const std::vector<std::string> pieces = {"{",
                                           "}",
                                           "[",
                                           "]",
                                           ":",
                                           ",",
                                           "\"",
                                           "\"id\"",
                                           " ",
                                           "1",
                                           "-0.5",
                                           "true",
                                           "null",
                                           "\\u00e9",
                                           "\\",
                                           "\\n",
                                           "\\ud83d\\ude00",
                                           "\\ud83d",
                                           "\xC3\xA9",
                                           "\xC3",
                                           "0",
                                           "\"a\":",
                                           "\"id\":",
                                           "\"b\"",
                                           "{\"id\":",
                                           "\t"};
  int accepted = 0;
  for (int i = 0; i < TestRounds(30'000, 200'000); ++i) {
    std::string text = "{\"id\":";
    for (size_t n = random() % 6; n > 0; --n) {
      text += pieces[random() % pieces.size()];
    }
    text += "}";
    const auto json = nlohmann::json::parse(text, nullptr, false);
    std::vector<RecordField> fields = {{.name = "id"}};
    std::string tolerated;
    const absl::Status status =
        ReadJsonFields(text, absl::MakeSpan(fields), &tolerated);
    ASSERT_EQ(status.ok() && tolerated.empty() &&
                  fields[0].state != State::kMalformed,
              json.is_object())
        << text << " " << status << " " << tolerated;
    if (!json.is_object()) {
      continue;
    }
    ++accepted;
    const auto id = json.find("id");
    ASSERT_EQ(fields[0].state, id == json.end() ? State::kMissing
                               : id->is_string() || id->is_number()
                                   ? State::kFound
                                   : State::kWrongType)
        << text;
    if (id != json.end() && id->is_string()) {
      ASSERT_EQ(fields[0].value, id->get<std::string>()) << text;
    }
  }
  EXPECT_GT(accepted, 1000);
}

TEST(CsvFieldsTest, SplitsAsInTheStandard) {
  const auto split = [](absl::string_view record) {
    return *SplitCsvRecord(record);
  };
  EXPECT_THAT(split("a,b,c\r\n"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(split("a,,c\n"), ElementsAre("a", "", "c"));
  EXPECT_THAT(split(""), ElementsAre(""));
  EXPECT_THAT(split("a,"), ElementsAre("a", ""));
  EXPECT_THAT(split("\"a,b\",\"c\"\"d\",\"\"\n"),
              ElementsAre("a,b", "c\"d", ""));
  EXPECT_THAT(split("\"\"\"\",\"x\r\ny\"\r\n"), ElementsAre("\"", "x\r\ny"));
  EXPECT_THAT(split(" a , b \n"), ElementsAre(" a ", " b "));
  EXPECT_THAT(split("a,b\r"), ElementsAre("a", "b"));
  // A quote inside an unquoted field is itself.
  EXPECT_THAT(split("16\",a\"\"b,\"\"\n"), ElementsAre("16\"", "a\"\"b", ""));
}

TEST(CsvFieldsTest, OtherDelimitersAndLineEnds) {
  EXPECT_THAT(*SplitCsvRecord("a,b;\"c;\"\"\";d\n", {.delimiter = ';'}),
              ElementsAre("a,b", "c;\"", "d"));
  EXPECT_THAT(*SplitCsvRecord("a\tb\r", {.delimiter = '\t', .line_end = '\r'}),
              ElementsAre("a", "b"));
  EXPECT_EQ(CsvRecordSize("a;\"\n\"\nb", {.delimiter = ';'}), 6);
  EXPECT_EQ(CsvRecordSize("a,\"\r\"\rb", {.line_end = '\r'}), 6);
  EXPECT_EQ(CsvDelimiterOf("sep=;\r\n"), ';');
  EXPECT_EQ(CsvDelimiterOf("sep=\t"), '\t');
  EXPECT_EQ(CsvDelimiterOf("Sep=;"), ';');
  for (const char* line :
       {"sep=\n", "sep=;;\n", "sep=\"\n", "sap=;", ";\n", ""}) {
    EXPECT_EQ(CsvDelimiterOf(line), std::nullopt) << line;
  }
}

TEST(CsvFieldsTest, NamesWhatIsMalformed) {
  EXPECT_THAT(SplitCsvRecord("a,\"b\n").status().message(),
              HasSubstr("field 2 is not closed"));
  EXPECT_THAT(SplitCsvRecord("\"a\"b,c\n").status().message(),
              HasSubstr("closes field 1"));
  EXPECT_THAT(SplitCsvRecord("a, \"b\"\n").status().message(),
              HasSubstr("field 2 has blanks before its first quote"));
  std::vector<RecordField> fields = {{.name = "b", .column = 1}};
  QUIRE_ASSERT_OK(
      ReadCsvFields("1,\"t\"\"w\"\"o\"\n", 2, absl::MakeSpan(fields)));
  EXPECT_EQ(fields[0].value, "t\"w\"o");
  EXPECT_EQ(ReadCsvFields("1,2,3\n", 2, absl::MakeSpan(fields)).message(),
            "has 3 fields, the header line has 2");
  EXPECT_EQ(ReadCsvFields("1\n", 2, absl::MakeSpan(fields)).message(),
            "has 1 field, the header line has 2");
}

TEST(CsvFieldsTest, RecordsEndOutsideQuotes) {
  EXPECT_EQ(CsvRecordSize("a,b\nc"), 4);
  EXPECT_EQ(CsvRecordSize("a,b"), std::nullopt);
  EXPECT_EQ(CsvRecordSize(""), std::nullopt);
  EXPECT_EQ(CsvRecordSize("a,\"b\n\"\nc"), 7);
  EXPECT_EQ(CsvRecordSize("a,\"b\n\"\"\n\"\nc"), 10);
  EXPECT_EQ(CsvRecordSize("a,\"b\n"), std::nullopt);
  EXPECT_EQ(CsvRecordSize("a,\"b\""), std::nullopt);
  // Only a field that begins with a quote is quoted.
  EXPECT_EQ(CsvRecordSize("5\" disk,b\nc"), 10);
}

}  // namespace
}  // namespace quire
