// SPDX-License-Identifier: GPL-3.0-or-later
//
// Ids, texts, times and fields from records; compressed and damaged files.
#include "server/ingest/sources/lines/line_source.h"

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"

#include "server/ingest/testing/ingest_testing.h"
#include "server/ingest/testing/lines_testing.h"
#include "server/ingest/testing/memory_source.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

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

TEST(LineSourceTest, ACsvWithoutTheColumnIsAnError) {
  const absl::Status status =
      ReadLines({{"f", "key,text\n1,one\n"}}, {.id_field = "id"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("line 1: is not a JSON object, and as the header line "
                        "of a CSV it has no column \"id\"; its 2 columns are "
                        "\"key\", \"text\""));
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
