// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/crawl/warc_reader.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/status_macros.h"
#include "server/ingest/sources/streams/gzip_stream.h"
#include "server/ingest/testing/ingest_testing.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<std::vector<IngestedDocument>> ReadWarc(
    const std::string& text, size_t read_size = 4096) {
  WarcReader reader(std::make_unique<MemoryStream>(AsBytes(text), read_size),
                    "test.warc");
  return ReadAllDocuments(reader);
}

// Fails at its end, as decompressors do for truncated files.
class StreamThatFailsAtItsEnd final : public ByteStream {
 public:
  explicit StreamThatFailsAtItsEnd(ByteView bytes) : bytes_(bytes) {}

  absl::StatusOr<size_t> Read(MutableByteView out) override {
    QUIRE_ASSIGN_OR_RETURN(const size_t got, bytes_.Read(out));
    if (got == 0) {
      return absl::DataLossError("the stream failed");
    }
    return got;
  }

 private:
  MemoryStream bytes_;
};

TEST(WarcReaderTest, ReadsRecordsByteExact) {
  const std::string text = SmallWarc();
  for (const size_t read_size : std::vector<size_t>{1, 3, 64, 100000}) {
    SCOPED_TRACE(read_size);
    QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<IngestedDocument> documents,
                               ReadWarc(text, read_size));
    ASSERT_EQ(documents.size(), 5);
    EXPECT_EQ(Concatenate(documents), text);

    EXPECT_EQ(documents[0].document.id, "urn:uuid:info");
    EXPECT_EQ(documents[0].document.record_type, "warcinfo");
    EXPECT_EQ(documents[0].document.media_type, "application/warc-fields");
    EXPECT_EQ(documents[0].document.capture_time_ms, 1577836800000);
    EXPECT_EQ(documents[1].document.id, "http://example.org/");
    EXPECT_EQ(documents[1].document.record_type, "request");
    EXPECT_EQ(documents[1].document.media_type, "application/http");
    EXPECT_EQ(documents[1].document.capture_time_ms, std::nullopt);
    EXPECT_EQ(documents[2].document.id, "http://example.org/");
    EXPECT_EQ(documents[2].document.record_type, "response");
    EXPECT_EQ(documents[2].document.media_type, "text/html");
    EXPECT_EQ(documents[2].document.capture_time_ms, 1577836801250);
    EXPECT_EQ(documents[3].document.media_type, "text/dns");
    EXPECT_EQ(documents[4].document.id, "warc-record:4");
  }
}

TEST(WarcReaderTest, AnEmptyStreamHasNoRecords) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<IngestedDocument> documents,
                             ReadWarc(""));
  EXPECT_TRUE(documents.empty());
}

TEST(WarcReaderTest, ReadsPerRecordGzip) {
  const std::string text = SmallWarc();
  std::string compressed;
  size_t start = 0;
  while (start < text.size()) {
    const size_t end =
        std::min(text.find("\r\n\r\nWARC/1.", start), text.size() - 4) + 4;
    compressed += Gzip(absl::string_view(text).substr(start, end - start));
    start = end;
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(
      std::unique_ptr<ByteStream> stream,
      OpenGzipStream(std::make_unique<MemoryStream>(AsBytes(compressed), 7),
                     "test.warc.gz"));
  WarcReader reader(std::move(stream), "test.warc.gz");
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<IngestedDocument> documents,
                             ReadAllDocuments(reader));
  EXPECT_EQ(documents.size(), 5);
  EXPECT_EQ(Concatenate(documents), text);
}

// Reads all records past damage; counts failures.
std::vector<std::string> RecordsPastDamage(const std::string& compressed,
                                           int& failure_count) {
  auto stream = OpenGzipStream(
      std::make_unique<MemoryStream>(AsBytes(compressed)), "x.warc.gz");
  WarcReader reader(*std::move(stream), "x.warc.gz", RecordFormat::kWarc,
                    WarcDamage::kSkip);
  std::vector<std::string> records;
  failure_count = 0;
  bool goes_on = true;
  while (goes_on) {
    const auto document = reader.Next();
    if (document.ok() && !document->has_value()) {
      break;
    }
    absl::Status status = document.status();
    std::string record;
    if (status.ok()) {
      status = ReadContents(reader, 64, record);
    }
    if (status.ok()) {
      records.push_back(std::move(record));
    } else {
      ++failure_count;
      EXPECT_THAT(status.message(), HasSubstr("; left out: "));
      goes_on = reader.CanContinue();
    }
  }
  return records;
}

// For damage in any byte of header, data or checksum: no record of another
// member is lost, and no false record is read.
TEST(WarcReaderTest, LosesNothingButTheDamagedMember) {
  std::vector<std::string> records;
  std::string compressed;
  std::vector<size_t> ends;
  for (uint64_t i = 0; i < 6; ++i) {
    records.push_back(MakeWarcRecord({absl::StrCat("WARC-Target-URI: ", i)},
                                     MakeTestText(i * 40, i)));
    compressed += Gzip(records.back());
    ends.push_back(compressed.size());
  }
  for (size_t at = 0; at < compressed.size(); ++at) {
    for (const int bits : {0x01, 0x08, 0xFF}) {
      std::string damaged = compressed;
      damaged[at] = static_cast<char>(damaged[at] ^ bits);
      int failure_count = 0;
      const std::vector<std::string> found =
          RecordsPastDamage(damaged, failure_count);
      std::vector<std::string> expected = records;
      // Damage after the text of a record may leave the record complete.
      if (failure_count > 0 && found != records) {
        expected.erase(std::upper_bound(ends.begin(), ends.end(), at) -
                       ends.begin() + expected.begin());
      }
      EXPECT_LE(failure_count, 1) << at;
      ASSERT_EQ(found, expected) << at << " " << bits;
    }
  }
}

TEST(WarcReaderTest, NextGoesOverWhatIsLeftOfARecord) {
  const std::string text = absl::StrCat(
      MakeWarcRecord({"WARC-Target-URI: a"}, std::string(1000000, 'x')),
      MakeWarcRecord({"WARC-Target-URI: b"}, "y"));
  WarcReader reader(std::make_unique<MemoryStream>(AsBytes(text)), "x");
  QUIRE_ASSERT_OK_AND_ASSIGN(auto first, reader.Next());
  EXPECT_EQ(first->id, "a");
  std::string piece(77, '\0');
  QUIRE_ASSERT_OK(reader.Read(AsMutableBytes(piece)));
  QUIRE_ASSERT_OK_AND_ASSIGN(const uint64_t skipped, reader.Skip(500000));
  EXPECT_EQ(skipped, 500000);
  QUIRE_ASSERT_OK_AND_ASSIGN(auto second, reader.Next());
  EXPECT_EQ(second->id, "b");
  QUIRE_ASSERT_OK_AND_ASSIGN(const uint64_t rest, reader.Skip(1 << 20));
  EXPECT_EQ(rest, *second->size_bytes);
  QUIRE_ASSERT_OK_AND_ASSIGN(auto end, reader.Next());
  EXPECT_FALSE(end.has_value());
}

TEST(WarcReaderTest, LooksThroughLongHttpHeaders) {
  const std::string text = MakeWarcRecord(
      {"WARC-Type: response"},
      absl::StrCat("HTTP/1.1 200 OK\r\nX-Long: ", std::string(100000, 'x'),
                   "\r\nContent-Type: image/png\r\n\r\n",
                   std::string(300000, 'y')));
  for (const size_t read_size : std::vector<size_t>{1000, 1000000}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<IngestedDocument> documents,
                               ReadWarc(text, read_size));
    ASSERT_EQ(documents.size(), 1);
    EXPECT_EQ(documents[0].document.media_type, "image/png");
    EXPECT_EQ(documents[0].contents, text);
  }
}

TEST(WarcReaderTest, AcceptsBareLineFeeds) {
  const std::string text = absl::StrReplaceAll(SmallWarc(), {{"\r\n", "\n"}});
  // The blocks got shorter, so their lengths are wrong.
  EXPECT_THAT(ReadWarc(text), HasCode(absl::StatusCode::kDataLoss));
  const std::string record = "WARC/1.0\nContent-Length: 3\n\nabc\n\n";
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<IngestedDocument> documents,
                             ReadWarc(record + record));
  ASSERT_EQ(documents.size(), 2);
  EXPECT_EQ(Concatenate(documents), record + record);
}

TEST(WarcReaderTest, EveryCutIsAnError) {
  const std::string text = SmallWarc();
  std::vector<size_t> whole = {0};
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<IngestedDocument> documents,
                             ReadWarc(text));
  for (const IngestedDocument& document : documents) {
    whole.push_back(whole.back() + document.contents.size());
  }
  for (size_t size = 0; size < text.size(); ++size) {
    SCOPED_TRACE(size);
    const absl::StatusOr<std::vector<IngestedDocument>> cut =
        ReadWarc(text.substr(0, size));
    // Line ends after the last block may be missing.
    if (std::any_of(whole.begin(), whole.end(), [size](size_t end) {
          return size <= end && size + 4 >= end;
        })) {
      EXPECT_THAT(cut, IsOk());
    } else {
      EXPECT_THAT(cut, FailsWith(absl::StatusCode::kDataLoss,
                                 HasSubstr("test.warc: record ")));
    }
  }
}

TEST(WarcReaderTest, NamesRecordAndOffsetOfGarbage) {
  const std::string first = MakeWarcRecord({"WARC-Target-URI: a"}, "block");
  EXPECT_THAT(ReadWarc(first + "garbage\r\n" + first),
              FailsWith(absl::StatusCode::kDataLoss,
                        AllOf(HasSubstr(absl::StrCat(
                                  "record 1 (from 0) at byte ", first.size())),
                              HasSubstr("must start with WARC/1.0"))));
  const std::string too_large =
      absl::StrReplaceAll(first, {{"Content-Length: 5", "Content-Length: 50"}});
  EXPECT_THAT(ReadWarc(first + too_large + first + first),
              FailsWith(absl::StatusCode::kDataLoss,
                        AllOf(HasSubstr(absl::StrCat(
                                  "record 1 (from 0) at byte ", first.size())),
                              HasSubstr("begins 41 bytes before"))));
  const std::string unterminated = absl::StrCat(
      first.substr(0, first.size() - 4), std::string(100'000, 'x'));
  EXPECT_THAT(ReadWarc(first + unterminated + "\r\n" + first),
              FailsWith(absl::StatusCode::kDataLoss,
                        AllOf(HasSubstr(absl::StrCat(
                                  "record 1 (from 0) at byte ", first.size())),
                              HasSubstr("Content-Length is wrong"))));
}

// Reads records that deviate, with either reaction to damage; returns the
// notes.
std::vector<std::string> NotesOfIrregular(
    const std::string& text, const std::vector<std::string>& records) {
  std::vector<std::string> notes;
  for (const WarcDamage damage : {WarcDamage::kStop, WarcDamage::kSkip}) {
    for (const size_t read_size : std::vector<size_t>{1, 70, 100000}) {
      notes.clear();
      WarcReader reader(
          std::make_unique<MemoryStream>(AsBytes(text), read_size), "x.warc",
          RecordFormat::kWarc, damage);
      reader.Listen([&](EntryNote note, const std::string& sentence) {
        EXPECT_EQ(note, EntryNote::kIrregularRecord);
        notes.push_back(sentence);
      });
      const auto documents = ReadAllDocuments(reader);
      EXPECT_THAT(documents, IsOk());
      EXPECT_EQ(documents->size(), records.size());
      for (size_t i = 0; i < std::min(documents->size(), records.size()); ++i) {
        EXPECT_EQ((*documents)[i].contents, records[i]);
      }
    }
  }
  return notes;
}

TEST(WarcReaderTest, KeepsRecordsWithOtherLineEndsAfterThem) {
  const std::string whole = MakeWarcRecord({"WARC-Target-URI: a"}, "block");
  const std::string bare = whole.substr(0, whole.size() - 4);
  for (const char* const gap :
       {"", "\n", "\r\n", "\n\n", "\r\n\r\n\r\n", "\r\n\n\r\n\n\r\n"}) {
    SCOPED_TRACE(gap);
    const std::string record = bare + gap;
    EXPECT_THAT(
        NotesOfIrregular(whole + record + whole, {whole, record, whole}),
        ElementsAre(AllOf(
            HasSubstr(absl::StrCat("record 1 (from 0) at byte ", whole.size())),
            HasSubstr("must be followed by"), HasSubstr("kept as it is"))));
    EXPECT_THAT(NotesOfIrregular(whole + record, {whole, record}),
                ElementsAre(HasSubstr("may be truncated")));
  }
}

TEST(WarcReaderTest, KeepsTextAfterATooSmallLength) {
  const std::string whole = MakeWarcRecord({"WARC-Target-URI: a"}, "block");
  for (const std::string& stray :
       {std::string("x"), std::string("x\r\n"), std::string("two\r\nlines"),
        std::string("\r\nWARC/1.0 in text"), std::string(60'000, 'y')}) {
    SCOPED_TRACE(stray.substr(0, 20));
    const std::string record =
        absl::StrCat(whole.substr(0, whole.size() - 4), stray, "\r\n\r\n");
    EXPECT_THAT(
        NotesOfIrregular(whole + record + whole, {whole, record, whole}),
        ElementsAre(AllOf(HasSubstr("record 1 (from 0)"),
                          HasSubstr(absl::StrCat(FormatCount(stray.size() + 4),
                                                 " bytes follow")))));
  }
  // The last line of the file.
  const std::string last = whole.substr(0, whole.size() - 4) + "x\r\n\r\n";
  EXPECT_THAT(NotesOfIrregular(whole + last, {whole, last}),
              ElementsAre(HasSubstr("5 bytes follow")));
}

// Records over 1 MiB are not looked through before they are read.
TEST(WarcReaderTest, ReadsRecordsAfterALongOneWithATooSmallLength) {
  const std::string whole = MakeWarcRecord({"WARC-Target-URI: a"}, "block");
  const std::string record = absl::StrReplaceAll(
      MakeWarcRecord({"WARC-Target-URI: b"}, std::string(1'400'000, 'y')),
      {{"Content-Length: 1400000", "Content-Length: 1399995"}});
  const std::string compressed = Gzip(record + whole + whole);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      std::unique_ptr<ByteStream> stream,
      OpenGzipStream(std::make_unique<MemoryStream>(AsBytes(compressed)), "x"));
  WarcReader reader(std::move(stream), "x");
  std::vector<std::string> notes;
  reader.Listen([&](EntryNote /*note*/, const std::string& sentence) {
    notes.push_back(sentence);
  });
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto documents, ReadAllDocuments(reader));
  ASSERT_EQ(documents.size(), 3);
  EXPECT_TRUE(documents[0].contents == record);
  EXPECT_EQ(documents[1].contents, whole);
  EXPECT_EQ(documents[2].contents, whole);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("9 bytes follow")));
}

TEST(WarcReaderTest, KeepsRecordsWithFaultyHeaders) {
  const std::string record = MakeWarcRecord(
      {"WARC-Target-URI: a", "no colon", "WARC-Date: never"}, "block");
  const std::string draft = MakeWarcRecord({}, "old", "WARC/0.18");
  const std::string lower = MakeWarcRecord({}, "low", "warc/1.0");
  EXPECT_THAT(NotesOfIrregular(record + draft + lower, {record, draft, lower}),
              ElementsAre(AllOf(HasSubstr("got \"no colon\""),
                                HasSubstr("got \"never\""))));
}

TEST(WarcReaderTest, KeepsRecordsWithoutALength) {
  const std::string whole = MakeWarcRecord({"WARC-Target-URI: a"}, "block");
  for (const char* const field :
       {"X-Length: 5", "Content-Length: x", "Content-Length: -5",
        "Content-Length: 5\r\nContent-Length: 6"}) {
    const std::string record =
        absl::StrReplaceAll(whole, {{"Content-Length: 5", field}});
    EXPECT_THAT(
        NotesOfIrregular(whole + record + whole, {whole, record, whole}),
        ElementsAre(HasSubstr("its Content-Length must be")));
    EXPECT_THAT(NotesOfIrregular(whole + record, {whole, record}),
                ElementsAre(HasSubstr("its Content-Length must be")));
  }
  // Too long to be sure.
  EXPECT_THAT(ReadWarc(absl::StrCat("WARC/1.0\r\n\r\n",
                                    std::string(3 << 20, 'x'), whole)),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("its Content-Length must be given")));
}

TEST(WarcReaderTest, AMemberEndsARecordWithATooLargeLength) {
  const std::string whole = MakeWarcRecord({"WARC-Target-URI: a"}, "block");
  // One that can be read as a whole, and one over all limits.
  for (const auto& [length, is_last] :
       {std::pair("70", false), {"70", true}, {"7000000004", false}}) {
    const std::string record = absl::StrReplaceAll(
        whole,
        {{"Content-Length: 5", absl::StrCat("Content-Length: ", length)}});
    const std::string compressed =
        absl::StrCat(Gzip(whole), Gzip(record), is_last ? "" : Gzip(whole));
    QUIRE_ASSERT_OK_AND_ASSIGN(
        std::unique_ptr<ByteStream> stream,
        OpenGzipStream(std::make_unique<MemoryStream>(AsBytes(compressed)),
                       "x"));
    WarcReader reader(std::move(stream), "x");
    std::vector<std::string> notes;
    reader.Listen([&](EntryNote /*note*/, const std::string& sentence) {
      notes.push_back(sentence);
    });
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto documents, ReadAllDocuments(reader));
    ASSERT_EQ(documents.size(), is_last ? 2 : 3);
    EXPECT_EQ(documents[1].contents, record);
    EXPECT_THAT(notes,
                ElementsAre(HasSubstr(absl::StrCat(
                    "its member, which ends ",
                    length == absl::string_view("70") ? "61" : "6,999,999,995",
                    " bytes"))));
  }
}

TEST(WarcReaderTest, AHugeContentLengthIsACutFile) {
  const std::string text =
      "WARC/1.0\r\nContent-Length: 9223372036854775807\r\n\r\nabc";
  EXPECT_THAT(ReadWarc(text), FailsWith(absl::StatusCode::kDataLoss,
                                        HasSubstr("is it truncated?")));
}

TEST(WarcReaderTest, AnEndlessHeaderIsAnError) {
  const std::string text =
      absl::StrCat("WARC/1.0\r\nX: ", std::string(3 << 20, 'x'));
  EXPECT_THAT(ReadWarc(text), FailsWith(absl::StatusCode::kDataLoss,
                                        HasSubstr("within 1 MiB")));
}

TEST(WarcReaderTest, AFailingStreamIsNotTheEnd) {
  class FailingStream final : public ByteStream {
   public:
    absl::StatusOr<size_t> Read(MutableByteView /*out*/) override {
      return absl::UnavailableError("test.warc: cannot read");
    }
  };

  WarcReader reader(std::make_unique<FailingStream>(), "test.warc");
  EXPECT_THAT(reader.Next(), HasCode(absl::StatusCode::kUnavailable));
}

TEST(WarcReaderTest, DamagedWarcsNeverLoseBytesInSilence) {
  const std::string text = SmallWarc();
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    std::string damaged = text;
    damaged[random() % damaged.size()] = static_cast<char>(random());
    const absl::StatusOr<std::vector<IngestedDocument>> documents =
        ReadWarc(damaged, 1 + random() % 200);
    if (documents.ok()) {
      EXPECT_EQ(Concatenate(*documents), damaged);
    } else {
      EXPECT_THAT(documents, HasCode(absl::StatusCode::kDataLoss));
    }
  }
}

TEST(WarcReaderTest, GivesAllRecordsBeforeAStreamThatFails) {
  const std::string warc = SmallWarc();
  std::string text;
  for (int i = 0; i < 20; ++i) {
    text += warc;
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto whole, ReadWarc(text));
  // Bytes read ahead of a record must not affect it; but it is not verified if
  // the stream fails at its very end.
  size_t record_end = 0;
  size_t record_count = 0;
  for (size_t size = text.size() - 2 * warc.size(); size <= text.size();
       ++size) {
    while (record_count < whole.size() &&
           record_end + whole[record_count].contents.size() < size) {
      record_end += whole[record_count++].contents.size();
    }
    WarcReader reader(std::make_unique<StreamThatFailsAtItsEnd>(
                          AsBytes(absl::string_view(text).substr(0, size))),
                      "test.warc");
    size_t good_count = 0;
    absl::Status status;
    while (status.ok()) {
      const auto document = reader.Next();
      status = document.status();
      std::vector<uint8_t> out(100);
      size_t got = 1;
      while (status.ok() && got > 0) {
        const auto read = reader.Read(out);
        status = read.status();
        got = read.value_or(0);
      }
      good_count += status.ok() ? 1 : 0;
    }
    EXPECT_EQ(good_count, record_count) << size;
    EXPECT_EQ(status.message(), "the stream failed") << size;
  }
}

}  // namespace
}  // namespace quire
