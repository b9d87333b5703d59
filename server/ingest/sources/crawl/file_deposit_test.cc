// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/crawl/file_deposit.h"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/bytes.h"
#include "server/archive/files/sha256.h"
#include "server/ingest/testing/ingest_testing.h"
#include "testing/base/status_matchers.h"
#include "testing/base/temporary_directory.h"
#include "testing/base/test_level.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

std::string DepositedRecord(uint64_t number, size_t size) {
  return MakeWarcRecord(
      {"WARC-Type: resource", absl::StrCat("WARC-Target-URI: u:", number)},
      MakeTestText(size, number));
}

// Text of the first gzip member of `bytes`.
std::string TextOfMember(std::string bytes, size_t text_size) {
  std::string text(text_size, '\0');
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, 31), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  inflateEnd(&stream);
  return text;
}

// A file with ranges of text.
struct RangedFile {
  std::string bytes;
  // That of the documents, in their order.
  std::string text;
  std::vector<DepositRange> ranges;

  // Adds a range of records that is stored as it is, in gzip, or packed.
  void Add(const std::vector<std::string>& records, int kind) {
    DepositRange range = {.offset = bytes.size(), .is_packed = kind == 2};
    for (const std::string& record : records) {
      bytes += kind == 0   ? record
               : kind == 1 ? Gzip(record)
                           : std::string(record.rbegin(), record.rend());
      text += record;
    }
    range.size_bytes = bytes.size() - range.offset;
    ranges.push_back(range);
  }
};

class FileDepositTest : public ::testing::Test {
 protected:
  DepositSource::Result Draft(const RangedFile& file, bool keeps_all = true) {
    const std::string path = directory_.Write("file", file.bytes);
    const auto input = InputFile::Open(path);
    EXPECT_TRUE(input.ok()) << input.status();
    DepositSource::Options options;
    options.path = "file";
    options.text_size_bytes = file.text.size();
    options.keeps_all = keeps_all;
    auto result = MakeFileDeposit(*input, file.ranges)->Draft(options);
    EXPECT_TRUE(result.ok()) << result.status();
    return *std::move(result);
  }

  // Fails unless the draft makes the file out of its text and literals.
  static void ExpectDraft(const RangedFile& file,
                          const DepositSource::Result& result) {
    ASSERT_NE(result.draft, nullptr) << result.refusal;
    const DepositDraft::File& draft = result.draft->file();
    EXPECT_EQ(draft.size_bytes, file.bytes.size());
    EXPECT_EQ(result.draft->totals().text_size_bytes, file.text.size());
    Sha256Summer sum;
    sum.Add(AsBytes(file.bytes));
    EXPECT_EQ(draft.digest, sum.Finish());
    size_t at = 0;
    size_t text_at = 0;
    for (const DepositItem& item : draft.items) {
      ASSERT_GT(item.size_bytes, 0);
      ASSERT_LE(at + item.size_bytes, file.bytes.size());
      ASSERT_LE(text_at + item.text_size_bytes, file.text.size());
      const std::string bytes = file.bytes.substr(at, item.size_bytes);
      const std::string text = file.text.substr(text_at, item.text_size_bytes);
      if (item.kind == DepositItem::Kind::kText) {
        EXPECT_TRUE(bytes == text) << at;
      } else if (item.kind == DepositItem::Kind::kMember) {
        EXPECT_TRUE(TextOfMember(bytes, text.size()) == text) << at;
      } else {
        std::string literal(item.size_bytes, '\0');
        QUIRE_ASSERT_OK(draft.read(at, AsMutableBytes(literal)));
        EXPECT_TRUE(literal == bytes) << at;
      }
      at += item.size_bytes;
      text_at += item.text_size_bytes;
    }
    EXPECT_EQ(at, file.bytes.size());
    EXPECT_EQ(text_at, file.text.size());
  }

  const TemporaryDirectory directory_;
};

TEST_F(FileDepositTest, MakesAFileOfAnyRanges) {
  std::mt19937 random(TestSeed());
  const auto below = [&random](size_t bound) { return random() % bound; };
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    RangedFile file;
    bool has_packed = false;
    for (size_t i = below(6) + 1; i > 0; --i) {
      file.bytes += MakeTestText(below(3) * 40, i);
      std::vector<std::string> records;
      for (size_t record = below(5); record > 0; --record) {
        records.push_back(DepositedRecord(random(), below(900)));
      }
      const auto kind = static_cast<int>(below(3));
      has_packed |= kind == 2 && !records.empty();
      file.Add(records, kind);
    }
    file.bytes += MakeTestText(below(2) * 100, 9);
    const DepositSource::Result result = Draft(file);
    ExpectDraft(file, result);
    EXPECT_EQ(result.text_checksum.has_value(), !has_packed);
  }
}

TEST_F(FileDepositTest, ReproducesAllRanges) {
  RangedFile file;
  const std::string gap = "between ranges";
  for (uint64_t i = 0; i < 6; ++i) {
    file.bytes += gap;
    file.Add({DepositedRecord(i, 2000), DepositedRecord(i + 10, 3000)},
             static_cast<int>(i % 2));
  }
  const DepositSource::Result result = Draft(file, /*keeps_all=*/false);
  ExpectDraft(file, result);
  EXPECT_EQ(result.draft->totals().literal_size_bytes, 6 * gap.size());
  EXPECT_EQ(result.counts.reproduced_count, 6);
}

TEST_F(FileDepositTest, KnowsArcs) {
  const std::string arc = "u:arc 1.2.3.4 20050622190850 text/plain 5\nblock\n";
  RangedFile file;
  file.bytes = "start";
  file.Add({arc, arc}, 0);
  file.Add({arc}, 1);
  const DepositSource::Result result = Draft(file);
  ExpectDraft(file, result);
  EXPECT_EQ(result.draft->totals().literal_size_bytes, 5);
}

TEST_F(FileDepositTest, RangesThatDoNotFollowEachOtherAreOneLiteral) {
  RangedFile file;
  file.bytes = "start";
  for (uint64_t i = 0; i < 4; ++i) {
    file.Add({DepositedRecord(i, 500)}, 0);
  }
  std::swap(file.ranges[1], file.ranges[2]);
  file.text = absl::StrCat(DepositedRecord(0, 500), DepositedRecord(2, 500),
                           DepositedRecord(1, 500), DepositedRecord(3, 500));
  const DepositSource::Result result = Draft(file);
  ExpectDraft(file, result);
  EXPECT_EQ(result.draft->totals().literal_size_bytes,
            file.bytes.size() - DepositedRecord(3, 500).size());
  EXPECT_THAT(Draft(file, /*keeps_all=*/false).refusal,
              HasSubstr("would be stored a second time"));
}

TEST_F(FileDepositTest, RefusesWhatWouldTakeTooMuch) {
  RangedFile file;
  file.Add({DepositedRecord(1, 100'000)}, 0);
  // 1 KiB, and 1/200 of the file.
  file.bytes += std::string(1024 + 400, 'x');
  EXPECT_NE(Draft(file, /*keeps_all=*/false).draft, nullptr);
  file.bytes += std::string(200, 'x');
  EXPECT_THAT(Draft(file, /*keeps_all=*/false).refusal,
              HasSubstr("of other entries than WARCs"));
  ExpectDraft(file, Draft(file));
  file.Add({DepositedRecord(2, 10)}, 2);
  EXPECT_THAT(Draft(file, /*keeps_all=*/false).refusal,
              HasSubstr("compressed twice"));
}

TEST_F(FileDepositTest, RefusesAFileWhoseDocumentsHaveOtherText) {
  RangedFile file;
  file.Add({DepositedRecord(1, 1000)}, 0);
  file.Add({DepositedRecord(2, 1000)}, 1);
  file.text.pop_back();
  EXPECT_THAT(Draft(file).refusal, HasSubstr("some were left out"));
}

}  // namespace
}  // namespace quire
