// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests which records a WarcReader keeps that continues after damage.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include "server/ingest/sources/crawl/warc_reader.h"
#include "server/ingest/sources/streams/gzip_stream.h"
#include "server/ingest/testing/ingest_testing.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// Result of a reader that passes over damage: kept records, and what messages
// name as left out.
struct PassedText {
  std::string kept;
  // Offsets of the text's bytes that were kept, in order.
  std::vector<uint64_t> kept_offsets;
  std::vector<std::string> ids;
  std::vector<std::string> messages;
  // Ranges that are named as left out, offset and size.
  std::vector<std::pair<uint64_t, uint64_t>> left_out;
};

uint64_t NumberBefore(absl::string_view text, absl::string_view end) {
  const size_t at = text.rfind(end);
  const size_t start = text.find_last_not_of("0123456789,", at - 1) + 1;
  uint64_t number = 0;
  EXPECT_TRUE(absl::SimpleAtoi(
      absl::StrReplaceAll(text.substr(start, at - start), {{",", ""}}),
      &number))
      << text;
  return number;
}

uint64_t NumberAfter(absl::string_view text, absl::string_view start) {
  text = text.substr(text.rfind(start) + start.size());
  uint64_t number = 0;
  EXPECT_TRUE(absl::SimpleAtoi(
      text.substr(0, text.find_first_not_of("0123456789")), &number))
      << text;
  return number;
}

PassedText PassDamage(WarcReader& reader) {
  PassedText passed;
  while (true) {
    const auto document = reader.Next();
    if (document.ok() && !document->has_value()) {
      break;
    }
    absl::Status status = document.status();
    std::string record;
    uint64_t offset = 0;
    if (status.ok()) {
      offset = NumberAfter(reader.Place(), "at byte ");
      status = ReadContents(reader, 300, record);
    }
    if (status.ok()) {
      passed.ids.push_back((*document)->id);
      for (size_t i = 0; i < record.size(); ++i) {
        passed.kept_offsets.push_back(offset + i);
      }
      passed.kept += record;
      continue;
    }
    passed.messages.emplace_back(status.message());
    const std::string& message = passed.messages.back();
    if (message.find(" of the uncompressed WARC, ",
                     message.find("left out: ")) != std::string::npos) {
      passed.left_out.emplace_back(
          NumberAfter(message, " at offset "),
          NumberBefore(message,
                       message.find(" bytes at offset ") != std::string::npos
                           ? " bytes at offset "
                           : " byte at offset "));
    }
    if (!reader.CanContinue()) {
      break;
    }
  }
  return passed;
}

TEST(WarcDamageTest, FindsTheNextRecordAfterDamage) {
  const std::string a = MakeWarcRecord({"WARC-Target-URI: a"}, "block");
  const std::string b =
      MakeWarcRecord({"WARC-Target-URI: b"}, MakeTestText(20'000, 1));
  const std::vector<std::string> damaged = {
      absl::StrReplaceAll(a, {{"WARC/1.0", "WXRC/1.0"}}),
      absl::StrReplaceAll(a, {{"WARC/1.0", "WARC/7.0"}}),
      absl::StrReplaceAll(a, {{"Content-Length: 5", "Content-Length: 5000"}}),
      absl::StrReplaceAll(a, {{"Content-Length: 5", "Content-Length: 99999"}}),
      // Longer than what is examined.
      absl::StrReplaceAll(a,
                          {{"Content-Length: 5", "Content-Length: 99999999"}}),
      // Cut in its header, and in its block.
      a.substr(0, 15) + "\r\n", a.substr(0, a.size() - 7) + "\r\n",
      "garbage\r\n", std::string(200'000, '\n'),
      std::string(200'000, 'x') + "\n"};
  const TemporaryDirectory directory;
  for (const std::string& bad : damaged) {
    SCOPED_TRACE(bad.substr(0, 60));
    const std::string text = absl::StrCat(b, bad, b, a);
    for (const bool is_file : {false, true}) {
      std::unique_ptr<ByteStream> stream =
          std::make_unique<MemoryStream>(AsBytes(text), 1000);
      if (is_file) {
        QUIRE_ASSERT_OK_AND_ASSIGN(
            auto file, InputFile::Open(directory.Write("x.warc", text)));
        stream = std::make_unique<FileStream>(std::move(file));
      }
      WarcReader reader(std::move(stream), "x.warc", RecordFormat::kWarc,
                        WarcDamage::kSkip);
      const PassedText passed = PassDamage(reader);
      if (!is_file && bad.find("99999999") != std::string::npos) {
        // The rest was taken for its block.
        EXPECT_THAT(passed.ids, ElementsAre("b"));
        continue;
      }
      EXPECT_THAT(passed.ids, ElementsAre("b", "b", "a"));
      EXPECT_EQ(passed.kept, absl::StrCat(b, b, a));
      EXPECT_THAT(passed.left_out, ElementsAre(Pair(b.size(), bad.size())));
      EXPECT_THAT(passed.messages,
                  ElementsAre(AllOf(HasSubstr("x.warc: record 1 (from 0)"),
                                    HasSubstr(", up to the next record"))));
    }
  }
}

// However a WARC is damaged, each of its bytes is kept, or named as left out.
TEST(WarcDamageTest, EveryByteIsKeptOrNamed) {
  std::string text = SmallWarc();
  text += SmallWarc();
  const TemporaryDirectory directory;
  const auto seeds = static_cast<uint64_t>(TestRounds(800, 3000));
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    std::string damaged = text;
    for (uint64_t i = random() % 4; i < 4; ++i) {
      const size_t at = random() % damaged.size();
      const size_t size = random() % 40;
      switch (random() % 4) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged.insert(at, damaged.substr(random() % damaged.size(), size));
          break;
        case 2:
          damaged.erase(at, size + 1);
          break;
        default:
          damaged.insert(at, std::string(1 + size % 5, '\n'));
      }
    }
    // A whole member, too: the text is the same, and so is what is found.
    for (const bool is_compressed : {false, true}) {
      const std::string compressed = is_compressed ? Gzip(damaged) : damaged;
      std::unique_ptr<ByteStream> stream = std::make_unique<MemoryStream>(
          AsBytes(compressed), 1 + random() % 2000);
      if (is_compressed) {
        QUIRE_ASSERT_OK_AND_ASSIGN(stream,
                                   OpenGzipStream(std::move(stream), "x"));
      }
      WarcReader reader(std::move(stream), "x", RecordFormat::kWarc,
                        WarcDamage::kSkip);
      const PassedText passed = PassDamage(reader);
      ASSERT_EQ(passed.messages.size(), passed.left_out.size());
      std::vector<int> counts(damaged.size());
      for (const uint64_t offset : passed.kept_offsets) {
        ASSERT_LT(offset, counts.size());
        ++counts[offset];
      }
      for (const auto& [offset, size] : passed.left_out) {
        ASSERT_LE(offset + size, counts.size());
        for (uint64_t i = offset; i < offset + size; ++i) {
          ++counts[i];
        }
      }
      ASSERT_TRUE(std::all_of(counts.begin(), counts.end(),
                              [](int count) { return count == 1; }));
      for (size_t i = 0; i < passed.kept.size(); ++i) {
        ASSERT_EQ(passed.kept[i], damaged[passed.kept_offsets[i]]);
      }
    }
  }
}

TEST(WarcDamageTest, DoesNotNameKeptRecordsOfADamagedMember) {
  const std::string a = MakeWarcRecord({"WARC-Target-URI: a"}, "block");
  std::string text = a + a;
  for (uint64_t i = 0; i < 40; ++i) {
    text += MakeWarcRecord({"WARC-Target-URI: b"}, MakeTestText(9000, i));
  }
  std::string compressed = Gzip(text);
  const size_t at = compressed.size() / 2;
  compressed[at] = static_cast<char>(compressed[at] ^ 0x55);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      std::unique_ptr<ByteStream> stream,
      OpenGzipStream(std::make_unique<MemoryStream>(AsBytes(compressed)), "x"));
  WarcReader reader(std::move(stream), "x", RecordFormat::kWarc,
                    WarcDamage::kSkip);
  const PassedText passed = PassDamage(reader);
  EXPECT_GT(passed.ids.size(), 10u);
  ASSERT_FALSE(passed.messages.empty());
  EXPECT_THAT(
      passed.messages.back(),
      AllOf(HasSubstr("left out: the text from its byte "),
            HasSubstr(absl::StrCat("of the file at offset 0, its rest"))));
}

}  // namespace
}  // namespace quire
