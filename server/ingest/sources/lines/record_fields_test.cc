// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

#include "codecs/base/status_matchers.h"
#include "server/ingest/sources/lines/csv_fields.h"
#include "server/ingest/sources/lines/json_fields.h"

#include "nlohmann/json.hpp"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using State = RecordField::State;

// The value of member "id"; or the state, or the error.
std::string JsonId(absl::string_view text) {
  std::vector<RecordField> fields = {{.name = "id"}};
  const absl::Status status = ReadJsonFields(text, absl::MakeSpan(fields));
  if (!status.ok()) {
    return std::string(status.message());
  }
  return fields[0].state == State::kFound     ? "=" + fields[0].value
         : fields[0].state == State::kMissing ? "missing"
                                              : "wrong type";
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
  EXPECT_THAT(JsonId(nested(kJsonDepthMax + 1)), HasSubstr("at most 256"));
  EXPECT_THAT(JsonId(nested(1'000'000)), HasSubstr("at most 256"));
}

// Accepts the texts that another parser accepts, with the same value.
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
  for (int i = 0; i < 200'000; ++i) {
    std::string text = "{\"id\":";
    for (size_t n = random() % 6; n > 0; --n) {
      text += pieces[random() % pieces.size()];
    }
    text += "}";
    const auto json = nlohmann::json::parse(text, nullptr, false);
    std::vector<RecordField> fields = {{.name = "id"}};
    const absl::Status status = ReadJsonFields(text, absl::MakeSpan(fields));
    ASSERT_EQ(status.ok(), json.is_object()) << text << " " << status;
    if (!status.ok()) {
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
}

TEST(CsvFieldsTest, NamesWhatIsMalformed) {
  EXPECT_THAT(SplitCsvRecord("a,\"b\n").status().message(),
              HasSubstr("field 2 is not closed"));
  EXPECT_THAT(SplitCsvRecord("\"a\"b,c\n").status().message(),
              HasSubstr("closes field 1"));
  EXPECT_THAT(SplitCsvRecord("a\"b,c\n").status().message(),
              HasSubstr("field 1 has a quote"));
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
