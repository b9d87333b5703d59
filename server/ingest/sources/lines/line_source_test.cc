// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/lines/line_source.h"

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/sanitized.h"
#include "codecs/base/status_matchers.h"
#include "server/ingest/testing/ingest_testing.h"
#include "server/ingest/testing/memory_source.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

struct Lines {
  IdsAndContents documents;
  std::vector<std::string> bad_records;
};

absl::StatusOr<Lines> ReadLines(std::unique_ptr<SourceReader> files,
                                const LineSplit& split = {}) {
  LineReader reader(std::move(files), "input", split, nullptr, std::nullopt);
  Lines lines;
  reader.Listen([&lines](EntryNote note, const std::string& text) {
    if (note == EntryNote::kBadRecord) {
      lines.bad_records.push_back(text);
    }
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
