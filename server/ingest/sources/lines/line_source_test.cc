// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/lines/line_source.h"

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "server/ingest/testing/ingest_testing.h"
#include "server/ingest/testing/memory_source.h"
#include "testing/base/sanitized.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using std::string_literals::operator""s;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

struct Lines {
  IdsAndContents documents;
  std::vector<std::string> bad_records;
  std::vector<std::string> tolerated;
  std::vector<std::string> foreign;
};

absl::StatusOr<Lines> ReadLines(std::unique_ptr<SourceReader> files,
                                const LineSplit& split = {}) {
  LineReader reader(std::move(files), "input", split, nullptr, std::nullopt);
  Lines lines;
  reader.Listen([&lines](EntryNote note, const std::string& text) {
    std::vector<std::string>* const notes =
        note == EntryNote::kBadRecord       ? &lines.bad_records
        : note == EntryNote::kTolerated     ? &lines.tolerated
        : note == EntryNote::kForeignFormat ? &lines.foreign
                                            : nullptr;
    ASSERT_NE(notes, nullptr) << text;
    notes->push_back(text);
  });
  absl::StatusOr<std::vector<IngestedDocument>> documents =
      ReadAllDocuments(reader);
  if (!documents.ok()) {
    return documents.status();
  }
  for (IngestedDocument& document : *documents) {
    lines.documents.emplace_back(std::move(document.document.id),
                                 std::move(document.contents));
  }
  return lines;
}

absl::StatusOr<Lines> ReadLines(const IdsAndContents& files,
                                const LineSplit& split = {}) {
  return ReadLines(*FixedSource(files)->Open(), split);
}

absl::StatusOr<IdsAndContents> ReadInputLines(const std::string& path,
                                              SourceOptions options = {}) {
  options.spool_directory = ::testing::TempDir();
  if (!options.split.has_value()) {
    options.split.emplace();
  }
  absl::StatusOr<std::unique_ptr<Source>> source = OpenSource(path, options);
  if (!source.ok()) {
    return source.status();
  }
  absl::StatusOr<std::vector<IngestedDocument>> documents =
      ReadAllDocuments(**source);
  if (!documents.ok()) {
    return documents.status();
  }
  IdsAndContents lines;
  for (const IngestedDocument& document : *documents) {
    lines.emplace_back(document.document.id, document.contents);
  }
  return lines;
}

TEST(LineSourceTest, LinesKeepTheirEnds) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Lines lines,
      ReadLines({{"a.log", "one\ntwo\r\n\nlast"}, {"empty", ""}, {"b", "\n"}}));
  EXPECT_THAT(lines.documents,
              ElementsAre(Pair("a.log:1", "one\n"), Pair("a.log:2", "two\r\n"),
                          Pair("a.log:3", "\n"), Pair("a.log:4", "last"),
                          Pair("b:1", "\n")));
}

TEST(LineSourceTest, LinesOfAnyLength) {
  for (const size_t size : {262'143u, 262'144u, 262'145u, 600'000u}) {
    const std::string line = MakeTestText(size, 1);
    std::string text = line;
    std::replace(text.begin(), text.end(), '\n', ' ');
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const Lines lines,
        ReadLines({{"f", absl::StrCat("x\n", text, "\ny\n", text)}}));
    ASSERT_THAT(lines.documents,
                ElementsAre(Pair("f:1", "x\n"), Pair("f:2", text + "\n"),
                            Pair("f:3", "y\n"), Pair("f:4", text)));
  }
}

// The lines of any text are what a simple split finds, and are the text.
TEST(LineSourceTest, RandomTexts) {
  constexpr uint32_t kSeed = 7;
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  std::mt19937 random(kSeed);
  for (int round = 0; round < Fewer(300); ++round) {
    IdsAndContents files;
    IdsAndContents expected;
    for (int file = 0; file < 3; ++file) {
      std::string text;
      const size_t line_size_max = round % 10 == 0 ? 400'000 : 40;
      for (size_t i = random() % 20; i > 0; --i) {
        text.append(random() % line_size_max, static_cast<char>(random()));
        text += random() % 4 == 0 ? "\r\n" : "\n";
      }
      text.append(random() % 3, 'z');
      const std::string id = absl::StrCat("f", file);
      std::string line;
      int number = 0;
      for (const char byte : text) {
        line.push_back(byte);
        if (byte == '\n') {
          expected.emplace_back(absl::StrCat(id, ":", ++number), line);
          line.clear();
        }
      }
      if (!line.empty()) {
        expected.emplace_back(absl::StrCat(id, ":", ++number), line);
      }
      files.emplace_back(id, text);
    }
    QUIRE_ASSERT_OK_AND_ASSIGN(const Lines lines, ReadLines(files));
    ASSERT_EQ(lines.documents, expected) << "round " << round;
  }
}

TEST(LineSourceTest, SkipsLikeItReads) {
  const std::string text = absl::StrCat("a\n", std::string(700'000, 'b'),
                                        "\nccc\n", std::string(300'000, 'd'));
  LineReader reader(*FixedSource({{"f", text}})->Open(), "input", {}, nullptr,
                    std::nullopt);
  std::vector<uint64_t> sizes;
  while (true) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto document, reader.Next());
    if (!document.has_value()) {
      break;
    }
    uint64_t size = 0;
    while (true) {
      QUIRE_ASSERT_OK_AND_ASSIGN(const uint64_t skipped, reader.Skip(100'000));
      size += skipped;
      if (skipped < 100'000) {
        break;
      }
    }
    sizes.push_back(size);
  }
  EXPECT_THAT(sizes, ElementsAre(2, 700'001, 4, 300'000));
}

TEST(LineSourceTest, IdsFromJsonLines) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const Lines lines, ReadLines({{"f.jsonl",
                                                            "{\"id\":\"a\"}\n"
                                                            "{\"id\":7}\n"
                                                            "\n"
                                                            "{\"x\":1}\n"
                                                            "{\"id\":null}\n"
                                                            "{\"id\":\"\"}\n"
                                                            "{\"id\":\n"
                                                            "{\"id\":\"z\"}"}},
                                                          {.id_field = "id"}));
  EXPECT_THAT(
      lines.documents,
      ElementsAre(Pair("a", "{\"id\":\"a\"}\n"), Pair("7", "{\"id\":7}\n"),
                  Pair("f.jsonl:3", "\n"), Pair("f.jsonl:4", "{\"x\":1}\n"),
                  Pair("f.jsonl:5", "{\"id\":null}\n"),
                  Pair("f.jsonl:6", "{\"id\":\"\"}\n"),
                  Pair("f.jsonl:7", "{\"id\":\n"),
                  Pair("z", "{\"id\":\"z\"}")));
  EXPECT_THAT(
      lines.bad_records,
      ElementsAre("input: document 0, line 4: has no field \"id\"",
                  "input: document 0, line 5: has neither a string nor a "
                  "number in field \"id\"",
                  "input: document 0, line 6: has an empty field \"id\"",
                  AllOf(HasSubstr("line 7: is not JSON: expected a value"),
                        HasSubstr("at byte 8"))));
}

TEST(LineSourceTest, IdsFromCsv) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const Lines lines,
                             ReadLines({{"f.csv",
                                         "\xEF\xBB\xBFid,text\r\n"
                                         "1,one\r\n"
                                         "\"2\",\"two\r\nlines\"\r\n"
                                         "\r\n"
                                         "3\r\n"
                                         "4,\"end\n\""}},
                                       {.id_field = "id"}));
  EXPECT_THAT(lines.documents,
              ElementsAre(Pair("f.csv:1", "\xEF\xBB\xBFid,text\r\n"),
                          Pair("1", "1,one\r\n"),
                          Pair("2", "\"2\",\"two\r\nlines\"\r\n"),
                          Pair("f.csv:5", "\r\n"), Pair("f.csv:6", "3\r\n"),
                          Pair("4", "4,\"end\n\"")));
  EXPECT_THAT(lines.bad_records,
              ElementsAre("input: document 0, line 6: has 1 field, the header "
                          "line has 2"));
}

TEST(LineSourceTest, AQuoteThatIsNotClosedTakesNoOtherLines) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Lines lines,
      ReadLines({{"f", "id,t\n1,\"x\n2,y\n3,z\n"}}, {.id_field = "id"}));
  EXPECT_THAT(lines.documents,
              ElementsAre(Pair("f:1", "id,t\n"), Pair("f:2", "1,\"x\n"),
                          Pair("2", "2,y\n"), Pair("3", "3,z\n")));
  EXPECT_THAT(lines.bad_records,
              ElementsAre(HasSubstr("line 2: is not CSV: the quote that begins "
                                    "field 2 is not closed")));
}

TEST(LineSourceTest, AQuoteThatIsNotClosedInALongFileTakesNoOtherLines) {
  std::string text = "id,t\n1,\"x\n2,y\n";
  for (int line = 3; text.size() < (size_t{17} << 20); ++line) {
    absl::StrAppend(&text, line, ",", std::string(100'000, 'z'), "\n");
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const Lines lines,
                             ReadLines({{"f", text}}, {.id_field = "id"}));
  ASSERT_GT(lines.documents.size(), 4u);
  EXPECT_THAT(lines.documents[1], Pair("f:2", "1,\"x\n"));
  EXPECT_THAT(lines.documents[2], Pair("2", "2,y\n"));
  EXPECT_EQ(lines.documents[3].first, "3");
  EXPECT_EQ(lines.bad_records.size(), 1u);
}

TEST(LineSourceTest, ARecordOverTheLimitWithATextFieldIsOneRecord) {
  const std::string long_line = absl::StrCat(std::string(size_t{17} << 20, ' '),
                                             std::string(1 << 20, 'x'), "\n");
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Lines lines,
      ReadLines({{"f", absl::StrCat("{\"t\":\"a\"}\n", long_line,
                                    "{\"t\":\"b\"}\n")}},
                {.text_field = "t"}));
  ASSERT_EQ(lines.documents.size(), 3u);
  EXPECT_THAT(lines.documents[0], Pair("f:1", "a"));
  EXPECT_EQ(lines.documents[1].first, "f:2");
  EXPECT_TRUE(lines.documents[1].second == long_line);
  EXPECT_THAT(lines.documents[2], Pair("f:3", "b"));
}

TEST(LineSourceTest, AByteOrderMarkBeforeAQuotedHeader) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Lines lines,
      ReadLines({{"f", "\xEF\xBB\xBF\"a\nb\",id\nx,7\n"}}, {.id_field = "id"}));
  EXPECT_THAT(lines.documents,
              ElementsAre(Pair("f:1", "\xEF\xBB\xBF\"a\nb\",id\n"),
                          Pair("7", "x,7\n")));
}

TEST(LineSourceTest, TextFromAField) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Lines lines,
      ReadLines({{"f.jsonl", "{\"k\":1,\"t\":\"a\\nb\"}\n\n{\"k\":2}\n"},
                 {"g.csv", "t,k\n\"x\"\"y\",3\n,4\n"}},
                {.id_field = "k", .text_field = "t"}));
  EXPECT_THAT(lines.documents,
              ElementsAre(Pair("1", "a\nb"), Pair("2", "{\"k\":2}\n"),
                          Pair("3", "x\"y"), Pair("4", "")));
  EXPECT_THAT(lines.bad_records,
              ElementsAre(HasSubstr("line 3: has no field \"t\"")));
}

// UTF-16 of text in ASCII, with its byte order mark.
std::string Utf16(const std::string& text, bool is_big_endian) {
  std::string wide = is_big_endian ? "\xFE\xFF" : "\xFF\xFE";
  for (const char byte : text) {
    wide += is_big_endian ? std::string{'\0', byte} : std::string{byte, '\0'};
  }
  return wide;
}

TEST(LineSourceTest, JsonThatIsMalformedOutsideTheFieldsIsNoted) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Lines lines,
      ReadLines({{"f",
                  "{\"id\":\"a\",\"x\":NaN}\n{\"x\":\"\t\",\"id\":\"b\"}\n"
                  "{\"id\":\"c\"}\n"}},
                {.id_field = "id"}));
  EXPECT_THAT(lines.documents,
              ElementsAre(Pair("a", "{\"id\":\"a\",\"x\":NaN}\n"),
                          Pair("b", "{\"x\":\"\t\",\"id\":\"b\"}\n"),
                          Pair("c", "{\"id\":\"c\"}\n")));
  EXPECT_THAT(lines.bad_records, ElementsAre());
  EXPECT_THAT(
      lines.tolerated,
      ElementsAre("input: document 0, line 1: is not JSON: expected a value at "
                  "byte 15, found \"NaN}\\x0A\", and the fields could be read",
                  HasSubstr("line 2: ")));
}

TEST(LineSourceTest, MalformedFieldsCostNoOtherField) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const Lines lines,
                             ReadLines({{"f",
                                         "{\"id\":\"a\",\"t\":\"\\ud83d\"}\n"
                                         "{\"id\":\"\xFF\",\"t\":\"text\"}\n"}},
                                       {.id_field = "id", .text_field = "t"}));
  EXPECT_THAT(lines.documents,
              ElementsAre(Pair("a", "{\"id\":\"a\",\"t\":\"\\ud83d\"}\n"),
                          Pair("f:2", "text")));
  EXPECT_THAT(lines.bad_records,
              ElementsAre(AllOf(HasSubstr("line 1: is not JSON: "),
                                HasSubstr(", in field \"t\"")),
                          AllOf(HasSubstr("line 2: is not JSON: "),
                                HasSubstr(", in field \"id\""))));
}

TEST(LineSourceTest, RecordsOfRfc7464MayHaveLineEnds) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Lines lines,
      ReadLines({{"f",
                  "\x1E\x1E{\"id\":1,\n\"t\":\"a\"}\n\x1E{\"id\":2,\x1E\n"
                  "{\"id\":3}\n\n\x1E{\n\"id\":4}\n\x1E\n"}},
                {.id_field = "id"}));
  EXPECT_THAT(
      lines.documents,
      ElementsAre(Pair("1", "\x1E\x1E{\"id\":1,\n\"t\":\"a\"}\n"),
                  Pair("f:3", "\x1E{\"id\":2,"),
                  Pair("3", "\x1E\n{\"id\":3}\n\n"),
                  Pair("4", "\x1E{\n\"id\":4}\n"), Pair("f:8", "\x1E\n")));
  EXPECT_THAT(lines.bad_records, ElementsAre(HasSubstr("line 3: ")));
}

TEST(LineSourceTest, RepeatedHeaderLinesAndColumnsAreNoted) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Lines lines,
      ReadLines({{"f", "id,t,t\r\n1,a,b\r\n\xEF\xBB\xBFid,t,t\n2,c,d\n"}},
                {.id_field = "id", .text_field = "t"}));
  EXPECT_THAT(lines.documents, ElementsAre(Pair("1", "a"), Pair("2", "c")));
  EXPECT_THAT(lines.bad_records, ElementsAre());
  EXPECT_THAT(lines.tolerated,
              ElementsAre(HasSubstr("has 2 columns \"t\", and the first"),
                          HasSubstr("line 3: repeats the header line")));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Lines words,
      ReadLines({{"f", "word\na\nword\n"}}, {.id_field = "word"}));
  EXPECT_THAT(words.documents,
              ElementsAre(Pair("f:1", "word\n"), Pair("a", "a\n"),
                          Pair("word", "word\n")));
}

TEST(LineSourceTest, AByteOrderMarkMayPrecedeAnEmptyLine) {
  for (const std::string text : {"id,t\n1,a\n", "{\"id\":1,\"t\":\"a\"}\n"}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const Lines lines, ReadLines({{"f", "\xEF\xBB\xBF\r\n" + text}},
                                     {.id_field = "id", .text_field = "t"}));
    EXPECT_THAT(lines.documents, ElementsAre(Pair("1", "a")));
    EXPECT_THAT(lines.bad_records, ElementsAre());
  }
}

TEST(LineSourceTest, ObjectsArraysAndPaths) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Lines lines, ReadLines({{"f",
                                     "{\"m\":{\"id\":1},\"t\":[\"x\", 2]}\n"
                                     "{\"m\":{\"id\":2},\"t\":{\"a\":null}}\n"
                                     "{\"m\":{\"id\":3},\"t\":null}\n"}},
                                   {.id_field = "m.id", .text_field = "t"}));
  EXPECT_THAT(lines.documents,
              ElementsAre(Pair("1", "[\"x\", 2]"), Pair("2", "{\"a\":null}"),
                          Pair("3", "{\"m\":{\"id\":3},\"t\":null}\n")));
  EXPECT_THAT(lines.bad_records,
              ElementsAre(HasSubstr("line 3: has null in field \"t\"")));
}

TEST(LineSourceTest, AFieldThatNoRecordHasIsAnError) {
  const auto fault = [](const IdsAndContents& files, const LineSplit& split) {
    const auto lines = ReadLines(files, split);
    return lines.ok() ? "" : std::string(lines.status().message());
  };
  const IdsAndContents files = {{"e", ""},
                                {"f", "{\"id\":\"a\",\"t\":null}\n\n"},
                                {"g", "{\"id\":\"b\",\"m\":{}}\n"}};
  EXPECT_EQ(fault(files, {.id_field = "m.ip"}),
            "input: none of its 2 records has a usable field \"m.ip\"; "
            "document 1, line 1: has no field \"m.ip\"");
  EXPECT_THAT(fault(files, {.id_field = "id", .text_field = "t"}),
              HasSubstr("a usable field \"t\"; document 1, line 1: has null"));
  EXPECT_THAT(fault({{"f", "id,t\n1\n2\n"}}, {.id_field = "id"}),
              HasSubstr("none of its 2 records has a usable field \"id\""));
  EXPECT_EQ(fault({{"f", "id,t\n"}, {"e", "\n"}}, {.id_field = "id"}), "");
  EXPECT_EQ(fault(files, {.id_field = "id"}), "");
  // It is reported once.
  LineReader reader(*FixedSource(files)->Open(), "input", {.id_field = "no"},
                    nullptr, std::nullopt);
  for (int i = 0; i < 3; ++i) {
    QUIRE_ASSERT_OK(reader.Next().status());
  }
  EXPECT_FALSE(reader.Next().ok());
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto end, reader.Next());
  EXPECT_FALSE(end.has_value());
}

TEST(LineSourceTest, QuotesInsideFieldsOfACsv) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Lines lines,
      ReadLines({{"f", "id,t\n16\",disk\n2,a \"b\"\n"}}, {.id_field = "id"}));
  EXPECT_THAT(lines.documents,
              ElementsAre(Pair("f:1", "id,t\n"), Pair("16\"", "16\",disk\n"),
                          Pair("2", "2,a \"b\"\n")));
  EXPECT_THAT(lines.bad_records, ElementsAre());
}

TEST(LineSourceTest, DelimitersOfACsv) {
  const std::string spreadsheet = "\xEF\xBB\xBFsep=;\r\nid;t\r\na,b;1\r\n";
  const std::string tabs = "id\tt\nc\t2,3\n";
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Lines found, ReadLines({{"f", spreadsheet}, {"g", "id,t\nd,4\n"}},
                                   {.id_field = "id"}));
  EXPECT_THAT(found.documents,
              ElementsAre(Pair("f:1", "\xEF\xBB\xBFsep=;\r\n"),
                          Pair("f:2", "id;t\r\n"), Pair("a,b", "a,b;1\r\n"),
                          Pair("g:1", "id,t\n"), Pair("d", "d,4\n")));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Lines given,
      ReadLines({{"g", tabs}},
                {.id_field = "id", .text_field = "t", .delimiter = '\t'}));
  EXPECT_THAT(given.documents, ElementsAre(Pair("c", "2,3")));
  // One that is given has precedence.
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Lines other,
      ReadLines({{"f", "sep=;\nid\tt\nx;\t1\n"}},
                {.id_field = "id", .text_field = "t", .delimiter = '\t'}));
  EXPECT_THAT(other.documents, ElementsAre(Pair("x;", "1")));
  EXPECT_THAT(ReadLines({{"g", tabs}}, {.id_field = "id"}),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        HasSubstr("its 1 column is \"id\\x09t\"; another "
                                  "delimiter can be given, as in --delimiter "
                                  "tab")));
}

TEST(LineSourceTest, CarriageReturnsAloneEndLines) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const Lines lines,
                             ReadLines({{"f", "id,t\r1,\"a\rb\"\r2,c"},
                                        {"g", "{\"id\":3}\r{\"id\":4}\r"},
                                        {"h", "id\n5\n"}},
                                       {.id_field = "id"}));
  EXPECT_THAT(lines.documents,
              ElementsAre(Pair("f:1", "id,t\r"), Pair("1", "1,\"a\rb\"\r"),
                          Pair("2", "2,c"), Pair("3", "{\"id\":3}\r"),
                          Pair("4", "{\"id\":4}\r"), Pair("h:1", "id\n"),
                          Pair("5", "5\n")));
  EXPECT_THAT(lines.bad_records, ElementsAre());
}

TEST(LineSourceTest, Utf16BecomesUtf8) {
  const std::string csv = "id,t\r\na,1\r\n";
  // An e with an acute accent, a euro sign, and a pair.
  const std::string wide = std::string("\xFF\xFE") +
                           "{\0\"\0i\0d\0\"\0:\0"s
                           "\"\0\xE9\0\xAC\x20\x3D\xD8\x00\xDE\"\0}\0"s;
  QUIRE_ASSERT_OK_AND_ASSIGN(const Lines lines,
                             ReadLines({{"f", Utf16(csv, true)},
                                        {"g", Gzip(Utf16(csv, false))},
                                        {"h", wide}},
                                       {.id_field = "id"}));
  EXPECT_THAT(lines.documents,
              ElementsAre(Pair("f:1", "\uFEFFid,t\r\n"), Pair("a", "a,1\r\n"),
                          Pair("g:1", "\uFEFFid,t\r\n"), Pair("a", "a,1\r\n"),
                          Pair("\u00E9\u20AC\U0001F600",
                               "\uFEFF{\"id\":\"\u00E9\u20AC\U0001F600\"}")));
  EXPECT_EQ(lines.tolerated.size(), 3u);
  EXPECT_THAT(lines.tolerated[0], HasSubstr("document 0: is UTF-16"));
  std::string many = "id\n";
  for (int i = 0; i < 100'000; ++i) {
    absl::StrAppend(&many, i, "\n");
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Lines long_file,
      ReadLines({{"f", Utf16(many, false)}}, {.id_field = "id"}));
  ASSERT_EQ(long_file.documents.size(), 100'001u);
  EXPECT_EQ(long_file.documents.back(), std::pair("99999"s, "99999\n"s));
  const auto fault = [](const std::string& text) {
    return std::string(
        ReadLines({{"f", text}}, {.id_field = "id"}).status().message());
  };
  EXPECT_THAT(
      fault(Utf16("id\n1\n", false) + "x"),
      HasSubstr("document 0: is UTF-16 by its byte order mark, and ends "
                "inside a character at byte 12"));
  EXPECT_THAT(fault("\xFE\xFF\xD8\x3D\0a"s), HasSubstr("half of a surrogate "
                                                       "pair at byte 4"));
  EXPECT_THAT(fault("\xFF\xFE\0\0i\0\0\0"s), HasSubstr("UTF-32"));
  // Without fields every byte stays.
  QUIRE_ASSERT_OK_AND_ASSIGN(const Lines plain,
                             ReadLines({{"f", Utf16("a\nb", false)}}));
  EXPECT_THAT(plain.documents, ElementsAre(Pair("f:1",
                                                "\xFF\xFE"
                                                "a\0\n"s),
                                           Pair("f:2", "\0b\0"s)));
  EXPECT_THAT(plain.foreign, ElementsAre(HasSubstr("document 0: is UTF-16")));
}

TEST(LineSourceTest, NamesOtherFormats) {
  const auto fault = [](const std::string& text) {
    return std::string(
        ReadLines({{"f", text}}, {.id_field = "id"}).status().message());
  };
  EXPECT_THAT(
      fault(" [\n {\"id\":1},\n {\"id\":2}]\n"),
      HasSubstr("document 0: is a JSON array; --split takes JSON Lines"));
  EXPECT_THAT(fault("[\"id\"]"), HasSubstr("is a JSON array"));
  EXPECT_THAT(fault("PAR1\x15\x04"), HasSubstr("quire-pack parquet"));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Lines bracket,
      ReadLines({{"f", "[id],id\n1,2\n"}}, {.id_field = "id"}));
  EXPECT_EQ(bracket.documents[1].first, "2");
  QUIRE_ASSERT_OK_AND_ASSIGN(const Lines parquet, ReadLines({{"f", "PAR1"}}));
  EXPECT_THAT(parquet.foreign, ElementsAre(HasSubstr("quire-pack parquet")));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Lines lzop,
      ReadLines({{"f", "\x89LZO\0\r\n\x1A\n"s}, {"g", "a text\n"}}));
  EXPECT_THAT(lzop.foreign, ElementsAre(HasSubstr("has zero bytes")));
  // RFC 7464.
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Lines sequence,
      ReadLines({{"f", "\x1E{\"id\":1}\n\x1E{\"id\":2}\n"}},
                {.id_field = "id"}));
  EXPECT_THAT(sequence.documents, ElementsAre(Pair("1", "\x1E{\"id\":1}\n"),
                                              Pair("2", "\x1E{\"id\":2}\n")));
  EXPECT_THAT(sequence.bad_records, ElementsAre());
}

TEST(LineSourceTest, ACsvWithoutTheColumnIsAnError) {
  const absl::Status status =
      ReadLines({{"f", "key,text\n1,one\n"}}, {.id_field = "id"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("line 1: is not a JSON object, and as the header line "
                        "of a CSV it has no column \"id\"; its 2 columns are "
                        "\"key\", \"text\""));
}

TEST(LineSourceTest, RecordsOverTheLimitKeepTheLineNumber) {
  const std::string large = absl::StrCat("{\"id\":\"x\",\"t\":\"",
                                         std::string(17 << 20, 'x'), "\"}\n");
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Lines lines,
      ReadLines({{"f", absl::StrCat("{\"id\":1}\n", large, "{\"id\":3}\n")}},
                {.id_field = "id"}));
  ASSERT_EQ(lines.documents.size(), 3);
  EXPECT_EQ(lines.documents[1], std::pair(std::string("f:2"), large));
  EXPECT_EQ(lines.documents[2].first, "3");
  EXPECT_THAT(lines.bad_records,
              ElementsAre(HasSubstr("line 2: is longer than 16 MiB")));
}

TEST(LineSourceTest, TheLimitOfARecordIsTheSameAfterACompressedFile) {
  const std::string large = absl::StrCat(
      "{\"id\":\"x\",\"t\":\"", std::string(kRecordSizeBytesMax, 'x'), "\"}\n");
  const std::string text = absl::StrCat("{\"id\":1}\n", large, "{\"id\":3}\n");
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Lines lines,
      ReadLines({{"f", text}, {"g", Gzip(text)}, {"h", text}},
                {.id_field = "id"}));
  std::vector<std::string> ids;
  for (const auto& [id, contents] : lines.documents) {
    ids.push_back(id);
    EXPECT_TRUE(contents.size() < 100 || contents == large) << id;
  }
  EXPECT_THAT(ids,
              ElementsAre("1", "f:2", "3", "1", "g:2", "3", "1", "h:2", "3"));
  EXPECT_EQ(lines.bad_records.size(), 3u);
}

TEST(LineSourceTest, ReadsCompressedFilesAnywhere) {
  const TemporaryDirectory directory;
  directory.Write("logs/a.log", "a1\na2\n");
  directory.Write("logs/a.log.1.gz", Gzip("b1\n") + Gzip("b2\n"));
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents in_directory,
                             ReadInputLines(directory / "logs"));
  EXPECT_THAT(
      in_directory,
      ElementsAre(Pair("a.log:1", "a1\n"), Pair("a.log:2", "a2\n"),
                  Pair("a.log.1.gz:1", "b1\n"), Pair("a.log.1.gz:2", "b2\n")));
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents single,
                             ReadInputLines(directory / "logs/a.log.1.gz"));
  EXPECT_THAT(single, ElementsAre(Pair("a.log.1.gz:1", "b1\n"),
                                  Pair("a.log.1.gz:2", "b2\n")));
  const std::string tar = directory.Write(
      "logs.tar.xz",
      MakeTestArchive("pax", "xz",
                      {{"x.gz", Gzip("one\ntwo")}, {"y", "three\n"}}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents in_tar, ReadInputLines(tar));
  EXPECT_THAT(in_tar,
              ElementsAre(Pair("x.gz:1", "one\n"), Pair("x.gz:2", "two"),
                          Pair("y:1", "three\n")));
  // The first blocks of bzip2 and lz4 are longer than the reader's buffer.
  std::mt19937 random(5);
  std::string text;
  while (text.size() < 3'000'000) {
    absl::StrAppend(&text, absl::Hex(random(), absl::kZeroPad8),
                    text.size() % 5 == 0 ? "\n" : "");
  }
  for (const char* filter : {"xz", "zstd", "bzip2", "lz4"}) {
    std::string compressed = MakeTestArchive("raw", filter, {{"data", text}});
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const IdsAndContents lines,
        ReadInputLines(directory.Write("file", compressed)));
    std::string whole;
    for (const auto& [id, contents] : lines) {
      whole += contents;
    }
    EXPECT_TRUE(whole == text) << filter;
  }
}

TEST(LineSourceTest, CompressedFilesMayBeEmpty) {
  // As their programs compress no text; libarchive's writer crashes then.
  std::string xz = absl::HexStringToBytes(
      "fd377a585a000004e6d6b446000000001cdf44211fb6f37d"
      "010000000004595a");
  const std::string bzip2 =
      absl::HexStringToBytes("425a683917724538509000000000");
  const std::string lz4 =
      absl::HexStringToBytes("04224d186440a700000000055dcc02");
  const TemporaryDirectory directory;
  directory.Write("logs/a", "1\n");
  directory.Write("logs/b.bz2", bzip2);
  directory.Write("logs/b.gz", Gzip(""));
  directory.Write("logs/b.lz4", lz4);
  directory.Write("logs/b.xz", xz);
  directory.Write("logs/b.zst", Zstd(""));
  directory.Write("logs/c", "2\n");
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents lines,
                             ReadInputLines(directory / "logs"));
  EXPECT_THAT(lines, ElementsAre(Pair("a:1", "1\n"), Pair("c:1", "2\n")));
  // The end of a truncated file is not that of its text.
  xz.pop_back();
  EXPECT_THAT(ReadInputLines(directory.Write("cut.xz", xz)),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("cut.xz")));
}

TEST(LineSourceTest, NamesDamage) {
  const TemporaryDirectory directory;
  std::string damaged = Gzip(MakeTestText(100'000, 3));
  damaged.resize(damaged.size() / 2);
  directory.Write("logs/a.gz", damaged);
  directory.Write("logs/b", "b1\n");
  const absl::Status status = ReadInputLines(directory / "logs").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("logs: the file \"a.gz\""), HasSubstr("gzip")));

  // Reading continues with the next file.
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Source> source,
      OpenSource(directory / "logs", {.split = LineSplit{}}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<SourceReader> reader,
                             source->Open());
  std::string last_id;
  int failure_count = 0;
  while (true) {
    const auto document = reader->Next();
    if (!document.ok()) {
      ASSERT_TRUE(reader->CanContinue());
      ++failure_count;
      continue;
    }
    if (!document->has_value()) {
      break;
    }
    last_id = (*document)->id;
  }
  EXPECT_EQ(failure_count, 1);
  EXPECT_EQ(last_id, "b:1");
}

TEST(LineSourceTest, RulesApplyToFilesAndFields) {
  const TemporaryDirectory directory;
  directory.Write("in/a.jsonl", "{\"id\":\"old/1\"}\n{}\n");
  directory.Write("in/b.jsonl", "{\"id\":\"2\"}\n");
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::shared_ptr<const IdRules> rules,
                             IdRules::Create({.exclude_globs = {"b.*"},
                                              .strip_prefix = "old/",
                                              .prefix = "new/"}));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const IdsAndContents lines,
      ReadInputLines(directory / "in", {.id_rules = rules,
                                        .split = LineSplit{.id_field = "id"}}));
  EXPECT_THAT(lines, ElementsAre(Pair("new/1", "{\"id\":\"old/1\"}\n"),
                                 Pair("new/a.jsonl:2", "{}\n")));
}

TEST(LineSourceTest, RefusesWarcs) {
  const TemporaryDirectory directory;
  const std::string warc = directory.Write(
      "w.warc",
      MakeWarcRecord({"WARC-Type: resource", "WARC-Target-URI: u"}, "x"));
  EXPECT_THAT(std::string(ReadInputLines(warc).status().message()),
              HasSubstr("has records instead of lines, as a warc"));
  EXPECT_THAT(
      std::string(
          ReadInputLines(directory / "", {.expand = true}).status().message()),
      AllOf(HasSubstr("w.warc"),
            HasSubstr("has records instead of lines, as a warc")));
}

}  // namespace
}  // namespace quire
