// SPDX-License-Identifier: GPL-3.0-or-later
//
// The same captures as WARC, ARC, WACZ and .warc.zst are the same documents;
// and what is special to ARCs.
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/status_macros.h"
#include "server/ingest/sources/crawl/warc_reader.h"
#include "server/ingest/testing/ingest_testing.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Capture {
  std::string url;
  // Two digits.
  std::string second;
  std::string media_type;
  std::string block;
};

std::vector<Capture> RandomCaptures(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Capture> captures;
  const uint64_t count = 1 + random() % 30;
  for (uint64_t i = 0; i < count; ++i) {
    Capture& capture = captures.emplace_back();
    const uint64_t kind = random() % 4;
    capture.url = absl::StrCat("http://e.org/", i / 2, kind == 0 ? " x" : "");
    capture.second = absl::StrCat(10 + i);
    capture.media_type = kind == 1 ? "image/png" : "text/html";
    // Text that looks like what is around it, too.
    std::string body = MakeTestText(random() % 3000, seed * 100 + i);
    body += random() % 2 == 0 ? "\n\nWARC/1.0\r\n" : "\nhttp://e.org/ 1.2.3.4 ";
    capture.block =
        kind == 2 ? body
                  : absl::StrCat("HTTP/1.1 200 OK\r\nContent-Type: ",
                                 capture.media_type, "\r\n\r\n", body, "x");
    if (kind == 2) {
      capture.block += "end";
    }
  }
  return captures;
}

std::string WarcRecord(const Capture& capture) {
  return MakeWarcRecord(
      {"WARC-Type: response", "WARC-Target-URI: " + capture.url,
       absl::StrCat("WARC-Date: 2005-06-22T19:08:", capture.second, "Z"),
       "Content-Type: " + capture.media_type},
      capture.block);
}

std::string FileDescription(int version) {
  const std::string block =
      absl::StrCat(version, " 0 Test\nURL IP-address Archive-date ",
                   "Content-type Archive-length\n");
  return absl::StrCat("filedesc://x.arc 0.0.0.0 20050622190800 text/plain",
                      version == 1 ? " " : " 200 - - 0 x.arc ", block.size(),
                      "\n", block, "\n");
}

std::string ArcRecord(const Capture& capture, int version) {
  return absl::StrCat(capture.url, " 1.2.3.4 200506221908", capture.second, " ",
                      capture.media_type,
                      version == 1 ? " " : " 200 5ba93c9d - 17 x.arc ",
                      capture.block.size(), "\n", capture.block, "\n");
}

absl::StatusOr<std::vector<IngestedDocument>> ReadFile(
    const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(
      const std::unique_ptr<Source> source,
      OpenSource(path, {.spool_directory = ::testing::TempDir()}));
  return ReadAllDocuments(*source);
}

// All formats of the same captures.
TEST(CrawlFormatsTest, AllGiveTheSameDocuments) {
  const TemporaryDirectory directory;
  const std::string dictionary = MakeZstdDictionary(5);
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const std::vector<Capture> captures = RandomCaptures(seed);
    std::string warc;
    std::string warc_zst =
        ZstdDictionaryFrame(seed % 2 == 0 ? dictionary : Zstd(dictionary));
    std::string parts[2];
    for (size_t i = 0; i < captures.size(); ++i) {
      const std::string record = WarcRecord(captures[i]);
      warc += record;
      warc_zst += Zstd(record, dictionary);
      parts[i < captures.size() / 2 ? 0 : 1] += Gzip(record);
    }
    const std::string wacz = MakeTestArchive("zip", "none",
                                             {{"datapackage.json", "{}"},
                                              {"archive/2.warc.gz", parts[0]},
                                              {"archive/1.warc.gz", parts[1]}});
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto expected,
                               ReadFile(directory.Write("x", warc)));
    ASSERT_EQ(expected.size(), captures.size());
    for (const std::string& other : {warc_zst, wacz}) {
      QUIRE_ASSERT_OK_AND_ASSIGN(const auto documents,
                                 ReadFile(directory.Write("x", other)));
      ASSERT_EQ(documents.size(), expected.size());
      for (size_t i = 0; i < documents.size(); ++i) {
        const SourceDocument& got = documents[i].document;
        const SourceDocument& want = expected[i].document;
        EXPECT_EQ(got.id, want.id);
        EXPECT_EQ(got.capture_time_ms, want.capture_time_ms);
        EXPECT_EQ(got.record_type, want.record_type);
        EXPECT_EQ(got.media_type, want.media_type);
        EXPECT_EQ(documents[i].contents, expected[i].contents);
      }
    }
    for (const int version : {1, 2}) {
      std::string arc = FileDescription(version);
      std::string arc_gz = Gzip(arc);
      for (const Capture& capture : captures) {
        const std::string record = ArcRecord(capture, version);
        arc += record;
        arc_gz += Gzip(record);
      }
      for (const std::string& file : {arc, arc_gz}) {
        QUIRE_ASSERT_OK_AND_ASSIGN(const auto documents,
                                   ReadFile(directory.Write("x", file)));
        ASSERT_EQ(documents.size(), captures.size() + 1);
        EXPECT_EQ(documents[0].document.id, "filedesc://x.arc");
        EXPECT_EQ(documents[0].document.record_type, "warcinfo");
        EXPECT_EQ(Concatenate(documents), arc);
        for (size_t i = 0; i < captures.size(); ++i) {
          const SourceDocument& got = documents[i + 1].document;
          EXPECT_EQ(got.id, expected[i].document.id);
          EXPECT_EQ(got.capture_time_ms, expected[i].document.capture_time_ms);
          EXPECT_EQ(got.media_type, expected[i].document.media_type);
          EXPECT_EQ(got.record_type, "response");
          EXPECT_EQ(documents[i + 1].contents, ArcRecord(captures[i], version));
        }
      }
    }
  }
}

absl::StatusOr<std::vector<IngestedDocument>> ReadArc(
    const std::string& text, size_t read_size = 4096,
    std::vector<std::string>* notes = nullptr) {
  WarcReader reader(std::make_unique<MemoryStream>(AsBytes(text), read_size),
                    "x.arc", RecordFormat::kArc);
  if (notes != nullptr) {
    reader.Listen([notes](EntryNote /*note*/, const std::string& text_of_note) {
      notes->push_back(text_of_note);
    });
  }
  return ReadAllDocuments(reader);
}

TEST(ArcReaderTest, LineEndsBetweenRecordsMayBeMissingOrMany) {
  const Capture capture{"u:1", "10", "text/plain", "block"};
  std::string record = ArcRecord(capture, 1);
  record.pop_back();
  for (const std::string& gap :
       {std::string(), std::string("\r\n"), std::string("\n\n\n"),
        std::string(1000, '\n')}) {
    const std::string text = absl::StrCat(record, gap, record, gap, record);
    for (const size_t read_size : std::vector<size_t>{1, 100}) {
      QUIRE_ASSERT_OK_AND_ASSIGN(const auto documents,
                                 ReadArc(text, read_size));
      ASSERT_EQ(documents.size(), 3);
      EXPECT_EQ(documents[0].contents, record + gap);
      EXPECT_EQ(documents[2].contents, record);
    }
  }
  EXPECT_THAT(ReadArc(record + "\ngarbage\n" + record.substr(0, 20)),
              FailsWith(absl::StatusCode::kDataLoss,
                        AllOf(HasSubstr("x.arc: record 1 (from 0)"),
                              HasSubstr("must start with URL"))));
}

TEST(ArcReaderTest, SkipsWhatIsNotRead) {
  const Capture capture{"u:1", "10", "text/plain", MakeTestText(300000, 1)};
  const std::string text =
      FileDescription(1) + ArcRecord(capture, 1) + ArcRecord(capture, 1);
  WarcReader reader(std::make_unique<MemoryStream>(AsBytes(text)), "x.arc",
                    RecordFormat::kArc);
  for (int i = 0; i < 3; ++i) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto document, reader.Next());
    ASSERT_TRUE(document.has_value());
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const uint64_t skipped, reader.Skip(UINT64_MAX));
  EXPECT_EQ(skipped, ArcRecord(capture, 1).size());
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto end, reader.Next());
  EXPECT_FALSE(end.has_value());
}

TEST(ArcReaderTest, EveryCutInsideARecordIsAnError) {
  const Capture capture{"http://e.org/", "10", "text/html", "HTTP/1.1 200 OK"};
  const std::string first = FileDescription(1);
  const std::string text = first + ArcRecord(capture, 1);
  for (size_t size = 1; size < text.size(); ++size) {
    const auto documents = ReadArc(text.substr(0, size));
    // The last line end of a record may be missing.
    if (size + 1 == first.size() || size == first.size() ||
        size + 1 == text.size()) {
      EXPECT_THAT(documents, IsOk()) << size;
    } else {
      EXPECT_THAT(documents, FailsWith(absl::StatusCode::kDataLoss,
                                       HasSubstr("x.arc: record ")))
          << size;
    }
  }
}

TEST(ArcReaderTest, NamesWrongLengths) {
  // Too small: what follows the block is kept with it.
  const std::string small = "u:1 1.2.3.4 20050622190850 text/plain 4\nblock\n";
  const std::string last = "u:2 1.2.3.4 20050622190850 text/plain 5\nblock\n";
  std::vector<std::string> notes;
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto documents,
                             ReadArc(small + last, 4096, &notes));
  ASSERT_EQ(documents.size(), 2);
  EXPECT_EQ(documents[0].contents, small);
  EXPECT_THAT(notes,
              ElementsAre(AllOf(HasSubstr("record 0 (from 0) at byte 0 of the "
                                          "uncompressed ARC"),
                                HasSubstr("2 bytes follow"))));
  // Too large.
  const std::string large = "u:1 1.2.3.4 20050622190850 text/plain 9\nblock\n";
  EXPECT_THAT(ReadArc(large + last),
              FailsWith(absl::StatusCode::kDataLoss,
                        AllOf(HasSubstr("record 0 (from 0) at byte 0"),
                              HasSubstr("begins 3 bytes before"))));
  EXPECT_THAT(
      ReadArc("u:1 1.2.3.4 20050622190850 t/p 9223372036854775807\nx"),
      FailsWith(absl::StatusCode::kDataLoss, HasSubstr("is it truncated?")));
  EXPECT_THAT(ReadArc("u:1" + std::string(3 << 20, 'x')),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("no line end ends its header within 1 MiB")));
}

TEST(ArcReaderTest, DamagedArcsNeverLoseBytesInSilence) {
  std::string text = FileDescription(1);
  for (const Capture& capture : RandomCaptures(3)) {
    text += ArcRecord(capture, 1);
  }
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    std::string damaged = text;
    damaged[random() % damaged.size()] = static_cast<char>(random());
    const auto documents = ReadArc(damaged, 1 + random() % 200);
    if (documents.ok()) {
      EXPECT_EQ(Concatenate(*documents), damaged);
    } else {
      EXPECT_THAT(documents, HasCode(absl::StatusCode::kDataLoss));
    }
  }
}

// The ids that are read past damage; records are compressed one by one.
std::vector<std::string> ReadPastDamage(const std::string& path,
                                        int& failure_count) {
  const absl::StatusOr<std::unique_ptr<Source>> source = OpenSource(
      path, {.spool_directory = ::testing::TempDir(), .skip_damage = true});
  EXPECT_THAT(source, IsOk());
  const absl::StatusOr<std::unique_ptr<SourceReader>> reader =
      (*source)->Open();
  EXPECT_THAT(reader, IsOk());
  std::vector<std::string> ids;
  failure_count = 0;
  bool can_continue = true;
  while (can_continue) {
    const auto document = (*reader)->Next();
    if (document.ok() && !document->has_value()) {
      break;
    }
    const absl::Status status = document.ok()
                                    ? (*reader)->Skip(UINT64_MAX).status()
                                    : document.status();
    if (status.ok()) {
      ids.push_back((*document)->id);
    } else {
      ++failure_count;
      EXPECT_THAT(status.message(), HasSubstr("; left out: "));
      can_continue = (*reader)->CanContinue();
    }
  }
  return ids;
}

TEST(CrawlFormatsTest, GoOnAfterADamagedRecord) {
  const TemporaryDirectory directory;
  const std::string dictionary = MakeZstdDictionary(5);
  for (const bool is_arc : {false, true}) {
    for (const bool is_zstd : {false, true}) {
      for (size_t damaged = 0; damaged < 4; ++damaged) {
        SCOPED_TRACE(absl::StrCat(is_arc, is_zstd, damaged));
        std::string file = is_zstd ? ZstdDictionaryFrame(dictionary) : "";
        std::vector<std::string> expected;
        for (size_t i = 0; i < 4; ++i) {
          const Capture capture{absl::StrCat("u:", i), "10", "text/plain",
                                MakeTestText(2000, i)};
          const std::string record = is_arc && i == 0 ? FileDescription(1)
                                     : is_arc         ? ArcRecord(capture, 1)
                                                      : WarcRecord(capture);
          std::string member =
              is_zstd ? Zstd(record, dictionary) : Gzip(record);
          if (i == damaged) {
            // In the checksum, in the data, or in the magic number.
            const size_t at = damaged == 0   ? member.size() - (is_zstd ? 2 : 5)
                              : damaged == 1 ? member.size() / 2
                                             : 1;
            member[at] = static_cast<char>(member[at] ^ 0x10);
          } else {
            expected.push_back(is_arc && i == 0 ? "filedesc://x.arc"
                                                : capture.url);
          }
          file += member;
        }
        int failure_count = 0;
        const std::vector<std::string> ids =
            ReadPastDamage(directory.Write("x", file), failure_count);
        EXPECT_EQ(ids, expected);
        EXPECT_EQ(failure_count, 1);
      }
    }
  }
}

}  // namespace
}  // namespace quire
