// SPDX-License-Identifier: GPL-3.0-or-later
//
// How files are cut into records, and which formats they are taken for.
#include "server/ingest/sources/lines/record_cutter.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "server/ingest/testing/ingest_testing.h"
#include "server/ingest/testing/lines_testing.h"
#include "server/ingest/testing/memory_source.h"
#include "testing/base/sanitized.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using namespace std::string_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(RecordCutterTest, LinesKeepTheirEnds) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Lines lines,
      ReadLines({{"a.log", "one\ntwo\r\n\nlast"}, {"empty", ""}, {"b", "\n"}}));
  EXPECT_THAT(lines.documents,
              ElementsAre(Pair("a.log:1", "one\n"), Pair("a.log:2", "two\r\n"),
                          Pair("a.log:3", "\n"), Pair("a.log:4", "last"),
                          Pair("b:1", "\n")));
}

TEST(RecordCutterTest, LinesOfAnyLength) {
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
TEST(RecordCutterTest, RandomTexts) {
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

TEST(RecordCutterTest, SkipsLikeItReads) {
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

TEST(RecordCutterTest, AQuoteThatIsNotClosedTakesNoOtherLines) {
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

TEST(RecordCutterTest, AQuoteThatIsNotClosedInALongFileTakesNoOtherLines) {
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

TEST(RecordCutterTest, ARecordOverTheLimitWithATextFieldIsOneRecord) {
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

TEST(RecordCutterTest, AByteOrderMarkBeforeAQuotedHeader) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Lines lines,
      ReadLines({{"f", "\xEF\xBB\xBF\"a\nb\",id\nx,7\n"}}, {.id_field = "id"}));
  EXPECT_THAT(lines.documents,
              ElementsAre(Pair("f:1", "\xEF\xBB\xBF\"a\nb\",id\n"),
                          Pair("7", "x,7\n")));
}

TEST(RecordCutterTest, RecordsOfRfc7464MayHaveLineEnds) {
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

TEST(RecordCutterTest, AByteOrderMarkMayPrecedeAnEmptyLine) {
  for (const std::string text : {"id,t\n1,a\n", "{\"id\":1,\"t\":\"a\"}\n"}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const Lines lines, ReadLines({{"f", "\xEF\xBB\xBF\r\n" + text}},
                                     {.id_field = "id", .text_field = "t"}));
    EXPECT_THAT(lines.documents, ElementsAre(Pair("1", "a")));
    EXPECT_THAT(lines.bad_records, ElementsAre());
  }
}

TEST(RecordCutterTest, QuotesInsideFieldsOfACsv) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Lines lines,
      ReadLines({{"f", "id,t\n16\",disk\n2,a \"b\"\n"}}, {.id_field = "id"}));
  EXPECT_THAT(lines.documents,
              ElementsAre(Pair("f:1", "id,t\n"), Pair("16\"", "16\",disk\n"),
                          Pair("2", "2,a \"b\"\n")));
  EXPECT_THAT(lines.bad_records, ElementsAre());
}

TEST(RecordCutterTest, DelimitersOfACsv) {
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

TEST(RecordCutterTest, CarriageReturnsAloneEndLines) {
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

// The text in UTF-16, with its byte order mark.
std::string Utf16(std::u16string_view text, bool is_big_endian) {
  std::string bytes = is_big_endian ? "\xFE\xFF" : "\xFF\xFE";
  for (const char16_t unit : text) {
    const char high = static_cast<char>(unit >> 8);
    const char low = static_cast<char>(unit & 0xFF);
    bytes += is_big_endian ? std::string{high, low} : std::string{low, high};
  }
  return bytes;
}

TEST(RecordCutterTest, Utf16BecomesUtf8) {
  constexpr std::u16string_view kCsv = u"id,t\r\na,1\r\n";
  // An e with an acute accent, a euro sign, and a pair.
  const std::string wide = Utf16(u"{\"id\":\"\u00E9\u20AC\U0001F600\"}", false);
  QUIRE_ASSERT_OK_AND_ASSIGN(const Lines lines,
                             ReadLines({{"f", Utf16(kCsv, true)},
                                        {"g", Gzip(Utf16(kCsv, false))},
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
      ReadLines({{"f", Utf16(std::u16string(many.begin(), many.end()), false)}},
                {.id_field = "id"}));
  ASSERT_EQ(long_file.documents.size(), 100'001u);
  EXPECT_EQ(long_file.documents.back(), std::pair("99999"s, "99999\n"s));
  const auto fault = [](const std::string& text) {
    return std::string(
        ReadLines({{"f", text}}, {.id_field = "id"}).status().message());
  };
  EXPECT_THAT(
      fault(Utf16(u"id\n1\n", false) + "x"),
      HasSubstr("document 0: is UTF-16 by its byte order mark, and ends "
                "inside a character at byte 12"));
  EXPECT_THAT(fault("\xFE\xFF\xD8\x3D\0a"s), HasSubstr("half of a surrogate "
                                                       "pair at byte 4"));
  EXPECT_THAT(fault("\xFF\xFE\0\0i\0\0\0"s), HasSubstr("UTF-32"));
  // Without fields every byte stays.
  QUIRE_ASSERT_OK_AND_ASSIGN(const Lines plain,
                             ReadLines({{"f", Utf16(u"a\nb", false)}}));
  EXPECT_THAT(plain.documents, ElementsAre(Pair("f:1",
                                                "\xFF\xFE"
                                                "a\0\n"s),
                                           Pair("f:2", "\0b\0"s)));
  EXPECT_THAT(plain.foreign, ElementsAre(HasSubstr("document 0: is UTF-16")));
}

TEST(RecordCutterTest, NamesOtherFormats) {
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

TEST(RecordCutterTest, RecordsOverTheLimitKeepTheLineNumber) {
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

TEST(RecordCutterTest, TheLimitOfARecordIsTheSameAfterACompressedFile) {
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

}  // namespace
}  // namespace quire
