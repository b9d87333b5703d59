// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/crawl/wacz_source.h"

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/status_macros.h"
#include "server/ingest/testing/ingest_testing.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string Record(const std::string& uri) {
  return MakeWarcRecord(
      {"WARC-Type: resource", "WARC-Target-URI: " + uri},
      MakeTestText(1000, uri.size() + static_cast<uint8_t>(uri.back())));
}

std::string Wacz(std::vector<TestEntry> entries) {
  entries.push_back({"datapackage.json", "{\"profile\": \"data-package\"}"});
  return MakeTestArchive("zip", "none", entries);
}

// Returns two WARCs, and the other files of a crawler.
std::vector<TestEntry> SomeWarcs() {
  return {{"archive/", "", TestEntry::Kind::kDirectory},
          {"archive/b.warc", Record("u:b1") + Record("u:b2")},
          {"indexes/index.cdx.gz", "no index"},
          {"archive/a.warc.gz", Gzip(Record("u:a1")) + Gzip(Record("u:a2"))},
          {"pages/pages.jsonl", "{}\n"}};
}

TEST(WaczSourceTest, IsItsWarcsInTheirOrder) {
  const TemporaryDirectory directory;
  // Detected by its contents, whatever its name.
  for (const char* name : {"x.wacz", "x"}) {
    const std::string path = directory.Write(name, Wacz(SomeWarcs()));
    EXPECT_EQ(KindOf(path), "wacz");
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents documents, ReadInput(path));
    EXPECT_THAT(documents, ElementsAre(Pair("u:b1", Record("u:b1")),
                                       Pair("u:b2", Record("u:b2")),
                                       Pair("u:a1", Record("u:a1")),
                                       Pair("u:a2", Record("u:a2"))));
  }
}

TEST(WaczSourceTest, OtherZipsAreZips) {
  const TemporaryDirectory directory;
  EXPECT_EQ(KindOf(directory.Write(
                "x", MakeTestArchive("zip", "none",
                                     {{"archive/a.warc", Record("u:1")}}))),
            "zip");
  // A data package.
  EXPECT_EQ(KindOf(directory.Write("x", Wacz({{"data/a.csv", "a,b\n"}}))),
            "zip");
}

TEST(WaczSourceTest, NotesWhatIsNoWarc) {
  const TemporaryDirectory directory;
  std::vector<TestEntry> entries = SomeWarcs();
  entries.push_back({"archive/notes.txt", "notes"});
  entries.push_back({"extra.warc", Record("u:extra")});
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Source> source,
      OpenSource(directory.Write("x.wacz", Wacz(entries)),
                 {.spool_directory = directory.path()}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<SourceReader> reader,
                             source->Open());
  std::vector<std::string> notes;
  reader->Listen([&](EntryNote /*note*/, const std::string& text) {
    notes.push_back(text);
  });
  EXPECT_THAT(ReadAllDocuments(*reader), IsOk());
  EXPECT_THAT(
      notes,
      ElementsAre(AllOf(HasSubstr("x.wacz: "), HasSubstr("archive/notes.txt"),
                        HasSubstr("left out")),
                  HasSubstr("\"extra.warc\" is named like a WARC and not in "
                            "archive/; it is left out")));
}

TEST(WaczSourceTest, NotesIrregularRecords) {
  const TemporaryDirectory directory;
  std::string record = Record("u:a");
  record.resize(record.size() - 2);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Source> source,
      OpenSource(directory.Write("x.wacz", Wacz({{"archive/a.warc", record}})),
                 {.spool_directory = directory.path()}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<SourceReader> reader,
                             source->Open());
  std::vector<std::string> notes;
  reader->Listen([&](EntryNote /*note*/, const std::string& text) {
    notes.push_back(text);
  });
  EXPECT_THAT(ReadAllDocuments(*reader), IsOk());
  EXPECT_THAT(notes, ElementsAre(AllOf(HasSubstr("\"archive/a.warc\": record"),
                                       HasSubstr("kept as it is"))));
}

TEST(WaczSourceTest, ReadsArcsAndEveryCompression) {
  const TemporaryDirectory directory;
  const std::string arc = "u:arc 1.2.3.4 20050622190850 text/plain 5\nblock\n";
  const std::string path =
      directory.Write("x", Wacz({{"archive/a.arc", arc},
                                 {"archive/b.arc.gz", Gzip(arc)},
                                 {"archive/c.warc.zst", Zstd(Record("u:c"))},
                                 {"archive/d.arc.zst", Zstd(arc)}}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents documents, ReadInput(path));
  EXPECT_THAT(documents,
              ElementsAre(Pair("u:arc", arc), Pair("u:arc", arc),
                          Pair("u:c", Record("u:c")), Pair("u:arc", arc)));
}

TEST(WaczSourceTest, ReadsWaczsInAWacz) {
  const TemporaryDirectory directory;
  const std::string inner = Wacz(SomeWarcs());
  // Without WARCs of its own, or in archive/; and two deep.
  for (const std::vector<TestEntry>& entries :
       {std::vector<TestEntry>{{"one.wacz", inner}},
        {{"archive/one.wacz", inner}},
        {{"two.wacz", Wacz({{"one.wacz", inner}})}}}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents documents,
                               ReadInput(directory.Write("x", Wacz(entries))));
    EXPECT_THAT(documents, ElementsAre(Pair("u:b1", Record("u:b1")),
                                       Pair("u:b2", Record("u:b2")),
                                       Pair("u:a1", Record("u:a1")),
                                       Pair("u:a2", Record("u:a2"))));
  }
  std::string deep = inner;
  for (int i = 0; i < 5; ++i) {
    deep = Wacz({{"deep.wacz", deep}});
  }
  EXPECT_THAT(ReadInput(directory.Write("x.wacz", deep)),
              FailsWith(absl::StatusCode::kDataLoss,
                        AllOf(HasSubstr("x.wacz: \"deep.wacz\": "),
                              HasSubstr("at most 4 deep"))));
}

TEST(WaczSourceTest, OneWithoutWarcsIsAnError) {
  const TemporaryDirectory directory;
  for (const std::vector<TestEntry>& entries :
       {std::vector<TestEntry>{}, {{"archive/a.txt", "no WARC"}}}) {
    EXPECT_THAT(
        ReadInput(directory.Write("x.wacz", Wacz(entries))),
        FailsWith(absl::StatusCode::kDataLoss,
                  AllOf(HasSubstr("x.wacz: a WACZ must hold archive/*.warc"),
                        HasSubstr(entries.empty() ? "its 1 entry"
                                                  : "its 2 entries"))));
  }
}

TEST(WaczSourceTest, AMemberThatIsNoWarcIsAnError) {
  const TemporaryDirectory directory;
  EXPECT_THAT(ReadInput(directory.Write(
                  "x.wacz", Wacz({{"archive/a.warc", "not a WARC"}}))),
              FailsWith(absl::StatusCode::kDataLoss,
                        AllOf(HasSubstr("\"archive/a.warc\": record 0"),
                              HasSubstr("must start with WARC/1.0"))));
}

TEST(WaczSourceTest, AnEncryptedMemberIsAnError) {
  const TemporaryDirectory directory;
  std::string wacz = Wacz(SomeWarcs());
  MarkZipEntryEncrypted("archive/b.warc", wacz);
  EXPECT_THAT(ReadInput(directory.Write("x.wacz", wacz)),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        AllOf(HasSubstr("\"archive/b.warc\""),
                              HasSubstr("is encrypted"))));
  // Nothing is read of others.
  std::string other = Wacz(SomeWarcs());
  MarkZipEntryEncrypted("pages/pages.jsonl", other);
  EXPECT_THAT(ReadInput(directory.Write("x.wacz", other)), IsOk());
}

TEST(WaczSourceTest, EveryCutIsAnError) {
  const TemporaryDirectory directory;
  const std::string wacz = Wacz(SomeWarcs());
  for (size_t size = 30; size < wacz.size(); size += 11) {
    EXPECT_THAT(ReadInput(directory.Write("x.wacz", wacz.substr(0, size))),
                FailsWith(absl::StatusCode::kDataLoss, HasSubstr("x.wacz: ")))
        << size;
  }
}

TEST(WaczSourceTest, AMemberWithAWrongChecksumIsAnError) {
  const TemporaryDirectory directory;
  std::string wacz = Wacz(SomeWarcs());
  // After the text of the deflated member and the signature that follows it.
  const size_t at = wacz.find("PK\x07\x08") + 4;
  ASSERT_LT(at, wacz.size());
  // In the list of entries too, where it is believed.
  const std::string checksum = wacz.substr(at, 4);
  size_t changed_count = 0;
  for (size_t found = wacz.find(checksum); found != std::string::npos;
       found = wacz.find(checksum, found + 1)) {
    wacz[found] = static_cast<char>(wacz[found] ^ 1);
    ++changed_count;
  }
  EXPECT_GE(changed_count, 2U);
  EXPECT_THAT(ReadInput(directory.Write("x.wacz", wacz)),
              HasCode(absl::StatusCode::kDataLoss));
}

// Returns the ids read past all errors, and the number of errors.
std::pair<std::vector<std::string>, int> ReadPastErrors(SourceReader& reader) {
  std::pair<std::vector<std::string>, int> result;
  while (true) {
    const auto document = reader.Next();
    absl::Status status = document.status();
    if (status.ok() && !document->has_value()) {
      return result;
    }
    std::string contents;
    if (status.ok()) {
      status = ReadContents(reader, 100, contents);
    }
    if (status.ok()) {
      result.first.push_back((*document)->id);
    } else {
      EXPECT_THAT(status.message(), HasSubstr("x.wacz: "));
      EXPECT_TRUE(reader.CanContinue());
      ++result.second;
    }
  }
}

std::pair<std::vector<std::string>, int> ReadPastErrors(
    const std::string& path) {
  const absl::StatusOr<std::unique_ptr<Source>> source = OpenSource(
      path, {.spool_directory = ::testing::TempDir(), .skip_damage = true});
  const absl::StatusOr<std::unique_ptr<SourceReader>> opened =
      (*source)->Open();
  EXPECT_THAT(opened, IsOk());
  return ReadPastErrors(**opened);
}

TEST(WaczSourceTest, GoesOnAfterDamage) {
  const TemporaryDirectory directory;
  std::string damaged = Gzip(Record("u:b2"));
  damaged[damaged.size() / 2] =
      static_cast<char>(damaged[damaged.size() / 2] ^ 0x40);
  const std::string path = directory.Write(
      "x.wacz",
      Wacz({{"archive/d.warc", Record("u:d")},
            {"archive/c.warc", "garbage"},
            {"archive/b.warc.gz",
             absl::StrCat(Gzip(Record("u:b1")), damaged, Gzip(Record("u:b3")))},
            {"archive/a.warc.gz", Gzip(Record("u:a"))}}));
  const auto [ids, failure_count] = ReadPastErrors(path);
  EXPECT_THAT(ids, ElementsAre("u:d", "u:b1", "u:b3", "u:a"));
  EXPECT_EQ(failure_count, 2);
}

TEST(WaczSourceTest, GivesWhatIsThereOfATruncatedOne) {
  const TemporaryDirectory directory;
  const std::string first = Gzip(Record("u:a"));
  std::string second;
  for (int i = 0; i < 9; ++i) {
    second += Gzip(Record(absl::StrCat("u:b", i)));
  }
  const std::string wacz =
      Wacz({{"archive/a.warc.gz", first}, {"archive/b.warc.gz", second}});
  const std::string path = directory.Write("x.wacz", wacz);
  // All but the list of entries, and half of the second WARC.
  const size_t list = wacz.find("PK\x01\x02");
  const size_t half = wacz.find("archive/b.warc.gz") + second.size() / 2 + 40;
  ASSERT_LT(half, list);
  for (const size_t size : {list, list + 50, half}) {
    SCOPED_TRACE(size);
    directory.Write("x.wacz", wacz.substr(0, size));
    const auto [ids, failure_count] = ReadPastErrors(path);
    EXPECT_GE(ids.size(), size == half ? 3u : 10u);
    EXPECT_EQ(ids[0], "u:a");
    EXPECT_EQ(ids[1], "u:b0");
    EXPECT_EQ(failure_count, size == half ? 2 : 1);
  }
}

// Records after damage are found without reading the member from its start.
// Returns the bytes that this process has read from files.
uint64_t ReadBytes() {
  std::ifstream counters("/proc/self/io");
  std::string name;
  uint64_t size_bytes = 0;
  counters >> name >> size_bytes;
  return name == "rchar:" ? size_bytes : 0;
}

TEST(WaczSourceTest, DamageCostsNoPassOverTheMember) {
  std::string warc;
  for (int i = 0; i < 60; ++i) {
    std::string member = Gzip(Record(absl::StrCat("u:", i)));
    if (i % 2 == 0) {
      char& byte = member[member.size() / 2];
      byte = static_cast<char>(byte ^ 0x40);
    }
    warc += member;
  }
  const TemporaryDirectory directory;
  const std::string wacz = Wacz({{"archive/a.warc.gz", warc}});
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::shared_ptr<const InputFile> file,
                             InputFile::Open(directory.Write("x.wacz", wacz)));
  const uint64_t read_before = ReadBytes();
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Source> source,
                             MakeWaczSource({.name = "x.wacz",
                                             .open = nullptr,
                                             .file = file,
                                             .stored_size_bytes = wacz.size()},
                                            WarcDamage::kSkip));
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<SourceReader> reader,
                             source->Open());
  const auto [ids, failure_count] = ReadPastErrors(*reader);
  EXPECT_EQ(ids.size(), 30u);
  EXPECT_EQ(failure_count, 30);
  EXPECT_LE(ReadBytes() - read_before, 20 * wacz.size());
}

TEST(WaczSourceTest, ABombIsBounded) {
  const TemporaryDirectory directory;
  const std::string zeros(size_t{4} << 20, '\0');
  for (const TestEntry& entry :
       {TestEntry{"archive/a.warc.gz",
                  Gzip(MakeWarcRecord({"WARC-Target-URI: u"}, zeros))},
        // Padding after a member of gzip.
        TestEntry{"archive/a.warc.gz", Gzip(Record("u:1")) + zeros}}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<Source> source,
        OpenSource(directory.Write("x.wacz", Wacz({entry})),
                   {.spool_directory = directory.path(),
                    .input_size_bytes_max = 1 << 20}));
    EXPECT_THAT(ReadAllDocuments(*source),
                FailsWith(absl::StatusCode::kResourceExhausted,
                          HasSubstr("--input-size-max")));
  }
}

TEST(WaczSourceTest, IsExpandedInDirectories) {
  const TemporaryDirectory directory;
  directory.Write("in/x.wacz", Wacz(SomeWarcs()));
  // Not named like a zip, so it stays as it is.
  directory.Write("in/y.doc", Wacz(SomeWarcs()));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Source> source,
      OpenSource(directory / "in",
                 {.spool_directory = directory.path(), .expand = true}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<IngestedDocument> documents,
                             ReadAllDocuments(*source));
  std::vector<std::string> ids;
  for (const IngestedDocument& document : documents) {
    ids.push_back(document.document.id);
  }
  EXPECT_THAT(ids, ElementsAre("x.wacz/u:b1", "x.wacz/u:b2", "x.wacz/u:a1",
                               "x.wacz/u:a2", "y.doc"));
}

}  // namespace
}  // namespace quire
