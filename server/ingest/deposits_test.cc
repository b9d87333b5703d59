// SPDX-License-Identifier: GPL-3.0-or-later
//
// Deposited files from their inputs through builds and changes of archives back
// to their bytes.
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/archive_join.h"
#include "server/archive/archive_verifier.h"
#include "server/archive/deposit_reader.h"
#include "server/archive/deposited_files.h"
#include "server/archive/segment_reader.h"
#include "server/ingest/append.h"
#include "server/ingest/recompress.h"
#include "server/ingest/sources/source.h"
#include "server/ingest/testing/build_testing.h"
#include "server/ingest/testing/ingest_testing.h"
#include "testing/base/status_matchers.h"
#include "testing/base/temporary_directory.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Record(int i, size_t size) {
  return MakeWarcRecord(
      {"WARC-Type: resource",
       absl::StrCat("WARC-Record-ID: <urn:uuid:", i, ">"),
       absl::StrCat("WARC-Target-URI: http://example.org/", i),
       "WARC-Date: 2020-01-01T00:00:00Z", "Content-Type: text/plain"},
      MakeTestText(size, static_cast<uint64_t>(i)));
}

std::vector<std::string> Records(int count, size_t size, int first = 0) {
  std::vector<std::string> records;
  for (int i = first; i < first + count; ++i) {
    records.push_back(Record(i, size + static_cast<size_t>(i) * 37));
  }
  return records;
}

std::string Joined(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) {
    all += part;
  }
  return all;
}

// A gzip member by zlib, with a header of any kind.
std::string Member(const std::string& text, int level = 6,
                   gz_header* header = nullptr) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, level, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY),
            Z_OK);
  if (header != nullptr) {
    EXPECT_EQ(deflateSetHeader(&stream, header), Z_OK);
  }
  std::string bytes(text.size() + text.size() / 8 + 200, '\0');
  std::string copy = text;
  stream.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream.avail_in = static_cast<uInt>(copy.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  bytes.resize(stream.total_out);
  deflateEnd(&stream);
  return bytes;
}

// A member as wget writes it: its header has the sizes of text and member.
std::string WgetMember(const std::string& text) {
  std::string extra("sl\x08\0\0\0\0\0\0\0\0\0", 12);
  gz_header header = {};
  header.os = 3;
  header.extra = reinterpret_cast<Bytef*>(extra.data());
  header.extra_len = static_cast<uInt>(extra.size());
  std::string member = Member(text, 9, &header);
  const auto put = [&member](size_t at, size_t value) {
    for (size_t i = 0; i < 4; ++i) {
      member[at + i] = static_cast<char>(value >> (8 * i));
    }
  };
  put(16, text.size());
  put(20, member.size());
  return member;
}

// Of an encoder that is not known: two streams of stored blocks in one.
std::string ForeignMember(const std::string& text) {
  std::string member("\x1F\x8B\x08\0\0\0\0\0\0\xFF", 10);
  for (size_t at = 0; at < text.size(); at += 1000) {
    const size_t size = std::min<size_t>(1000, text.size() - at);
    member += at + size == text.size() ? '\1' : '\0';
    for (const size_t word : {size, ~size}) {
      member += static_cast<char>(word);
      member += static_cast<char>(word >> 8);
    }
    member += text.substr(at, size);
  }
  const uLong crc = crc32(0, reinterpret_cast<const Bytef*>(text.data()),
                          static_cast<uInt>(text.size()));
  for (const size_t word : {static_cast<size_t>(crc), text.size()}) {
    for (size_t i = 0; i < 4; ++i) {
      member += static_cast<char>(word >> (8 * i));
    }
  }
  return member;
}

std::string Gzipped(const std::vector<std::string>& records, int level = 6) {
  std::string all;
  for (const std::string& record : records) {
    all += Member(record, level);
  }
  return all;
}

class DepositsTest : public ::testing::Test {
 protected:
  DepositsTest() : options_(SmallBuildOptions("zstd:1", 1 << 20)) {
    options_.deposits = DepositMode::kAuto;
  }

  std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = directory_ / name;
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  static std::vector<std::unique_ptr<Source>> Open(
      const std::vector<std::string>& paths,
      const SourceOptions& options = {}) {
    std::vector<std::unique_ptr<Source>> sources;
    for (const std::string& path : paths) {
      auto source = OpenSource(path, options);
      EXPECT_TRUE(source.ok()) << source.status();
      sources.push_back(*std::move(source));
    }
    return sources;
  }

  DepositSummary Build(const std::vector<std::string>& paths,
                       const SourceOptions& options = {}) {
    fs::remove_all(path_);
    const auto summary = BuildArchive(path_, Open(paths, options), options_);
    EXPECT_TRUE(summary.ok()) << summary.status();
    return summary.ok() ? summary->deposits : DepositSummary();
  }

  DepositSummary Append(const std::vector<std::string>& paths, bool merge) {
    const auto summary = AppendToArchive(path_, Open(paths), ExistingMode::kAdd,
                                         options_, merge);
    EXPECT_TRUE(summary.ok()) << summary.status();
    return summary.ok() ? summary->build.deposits : DepositSummary();
  }

  // Fails unless the archive has the file, in one piece and in parts.
  static void ExpectFile(const std::string& archive_path,
                         const std::string& path, const std::string& expected) {
    SCOPED_TRACE(path);
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(archive_path));
    const DepositedFile* const file =
        archive->deposited_files().Find(path, archive->info().size_bytes);
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(file->state, DepositState::kKept);
    ASSERT_EQ(file->size_bytes, expected.size());
    DepositReader reader(*archive, *file);
    std::string found(expected.size(), '\0');
    QUIRE_ASSERT_OK(reader.Read(0, AsMutableBytes(found)));
    EXPECT_TRUE(found == expected);
    for (size_t at = 0; at < expected.size(); at += expected.size() / 7 + 1) {
      std::string part(std::min<size_t>(1234, expected.size() - at), '\0');
      QUIRE_ASSERT_OK(reader.Read(at, AsMutableBytes(part)));
      EXPECT_TRUE(part == expected.substr(at, part.size())) << at;
    }
    QUIRE_EXPECT_OK(
        reader.CheckDigest([](uint64_t) { return absl::OkStatus(); }));
  }

  void ExpectFile(const std::string& path, const std::string& expected) const {
    ExpectFile(path_, path, expected);
  }

  static std::vector<std::string> Damages(const std::string& archive_path) {
    std::vector<std::string> damages;
    const auto report =
        VerifyArchive(archive_path, {}, [&](const ArchiveDamage& damage) {
          damages.emplace_back(damage.status.message());
        });
    EXPECT_TRUE(report.ok()) << report.status();
    return damages;
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "x.quire";
  BuildOptions options_;
};

TEST_F(DepositsTest, KeepsPlainAndCompressedFiles) {
  const std::vector<std::string> records = Records(40, 3000);
  const std::string plain = Joined(Records(30, 2000, 100));
  std::string wget;
  for (const std::string& record : records) {
    wget += WgetMember(record);
  }
  const std::string gzip = Gzipped(records);
  const std::string whole = Member(Joined(records), 1);
  const DepositSummary summary =
      Build({Write("a.warc", plain), Write("b.warc.gz", gzip),
             Write("c.warc.gz", wget), Write("d.warc.gz", whole)});
  EXPECT_EQ(summary.file_count, 4);
  EXPECT_EQ(summary.literal_size_bytes, 0);
  EXPECT_EQ(summary.members.reproduced_count, 81);
  EXPECT_EQ(summary.size_bytes,
            plain.size() + gzip.size() + wget.size() + whole.size());
  EXPECT_THAT(summary.refusals, IsEmpty());
  ExpectFile("a.warc", plain);
  ExpectFile("b.warc.gz", gzip);
  ExpectFile("c.warc.gz", wget);
  ExpectFile("d.warc.gz", whole);
  EXPECT_THAT(Damages(path_), IsEmpty());
}

// Two sizes of a member, its kind and its header.
TEST_F(DepositsTest, TakesFourBytesForAMember) {
  std::vector<std::string> records;
  for (int i = 0; i < 2000; ++i) {
    records.push_back(Record(i, 300 + static_cast<size_t>(i) * 7 % 900));
  }
  const std::string input = Write("a.warc.gz", Gzipped(records));
  options_.segment_size_bytes = 64 << 20;
  Build({input});
  const uint64_t with = fs::file_size(path_ + "/segment-00000000");
  options_.deposits = DepositMode::kOff;
  Build({input});
  const uint64_t without = fs::file_size(path_ + "/segment-00000000");
  EXPECT_GT(with, without);
  EXPECT_LE(with - without, 4 * 2000 + 1024);
}

TEST_F(DepositsTest, StoresForeignMembersIfAsked) {
  std::vector<std::string> records = Records(20, 3000);
  std::string bytes = Gzipped(records);
  bytes += ForeignMember(Record(100, 5000));
  bytes += Member(Record(101, 100));
  const std::string input = Write("a.warc.gz", bytes);
  DepositSummary summary = Build({input});
  EXPECT_EQ(summary.file_count, 0);
  EXPECT_EQ(summary.lost_count, 0);
  EXPECT_THAT(summary.refusals, ElementsAre(HasSubstr("1 member of an unknown "
                                                      "encoder")));
  options_.deposits = DepositMode::kAll;
  summary = Build({input});
  EXPECT_EQ(summary.file_count, 1);
  EXPECT_EQ(summary.members.foreign_count, 1);
  EXPECT_EQ(summary.literal_size_bytes,
            ForeignMember(Record(100, 5000)).size());
  ExpectFile("a.warc.gz", bytes);
}

TEST_F(DepositsTest, StoresOtherCompressionIfAsked) {
  const std::string bytes = Zstd(Record(1, 5000)) + Zstd(Record(2, 9000));
  const std::string input = Write("a.warc.zst", bytes);
  DepositSummary summary = Build({input});
  EXPECT_EQ(summary.file_count, 0);
  EXPECT_THAT(summary.refusals, ElementsAre(HasSubstr("not by gzip")));
  options_.deposits = DepositMode::kAll;
  summary = Build({input});
  EXPECT_EQ(summary.literal_size_bytes, bytes.size());
  ExpectFile("a.warc.zst", bytes);
}

// Segments that end in the middle of files.
TEST_F(DepositsTest, ContinuesFilesInTheNextSegment) {
  options_.segment_size_bytes = 30000;
  options_.deposits = DepositMode::kAll;
  const std::string plain = Joined(Records(50, 2000));
  const std::string gzip = Gzipped(Records(50, 2000));
  const std::string whole = Member(Joined(Records(50, 2000)));
  Build({Write("a.warc", plain), Write("b.warc.gz", gzip),
         Write("c.warc.gz", whole)});
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  EXPECT_GT(archive->info().segment_count, 8);
  ExpectFile("a.warc", plain);
  ExpectFile("b.warc.gz", gzip);
  ExpectFile("c.warc.gz", whole);
  EXPECT_THAT(Damages(path_), IsEmpty());
  // Each joined again.
  QUIRE_ASSERT_OK(CompactArchive(path_, CompactedSegments::kAll,
                                 SmallBuildOptions("zstd:1", 1 << 20))
                      .status());
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto compacted, Archive::Open(path_));
  EXPECT_EQ(compacted->info().segment_count, 1);
  ExpectFile("a.warc", plain);
  ExpectFile("b.warc.gz", gzip);
  ExpectFile("c.warc.gz", whole);
}

TEST_F(DepositsTest, AppendsAndMerges) {
  const std::string first = Gzipped(Records(20, 3000));
  Build({Write("a.warc.gz", first)});
  std::vector<std::string> files = {first};
  for (int i = 1; i < 6; ++i) {
    files.push_back(Gzipped(Records(10 + i, 2000, 100 * i), i));
    const DepositSummary summary = Append(
        {Write(absl::StrCat("a", i, ".warc.gz"), files.back())}, i % 2 == 0);
    EXPECT_EQ(summary.file_count, 1);
  }
  ExpectFile("a.warc.gz", files[0]);
  for (size_t i = 1; i < files.size(); ++i) {
    ExpectFile(absl::StrCat("a", i, ".warc.gz"), files[i]);
  }
  EXPECT_THAT(Damages(path_), IsEmpty());
  // A path again: the newest file has it.
  Append({Write("a.warc.gz", files[3])}, true);
  ExpectFile("a.warc.gz", files[3]);
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  EXPECT_EQ(archive->deposited_files().files().size(), 7);
  BuildOptions options = SmallBuildOptions("zstd:1", 1 << 20);
  options.deposits = DepositMode::kAuto;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const CompactSummary compacted,
      CompactArchive(path_, CompactedSegments::kAll, options));
  EXPECT_EQ(compacted.build.deposits.file_count, 7);
  EXPECT_EQ(compacted.build.deposits.lost_count, 0);
  ExpectFile("a.warc.gz", files[3]);
  ExpectFile("a5.warc.gz", files[5]);
}

TEST_F(DepositsTest, KeepsFilesOfOnePathApart) {
  const std::string first = Gzipped(Records(5, 3000));
  const std::string second = Gzipped(Records(3, 2000, 50));
  Build({Write("1/a.warc.gz", first), Write("2/a.warc.gz", second)});
  const std::string other = directory_ / "other.quire";
  QUIRE_ASSERT_OK_AND_ASSIGN(const BuildSummary built,
                             BuildArchive(other, Open({path_}), options_));
  EXPECT_EQ(built.deposits.file_count, 2);
  EXPECT_THAT(built.deposits.refusals, IsEmpty());
  ExpectFile(other, "a.warc.gz", second);
}

TEST_F(DepositsTest, CarriesFilesToOtherArchives) {
  options_.deposits = DepositMode::kAll;
  options_.segment_size_bytes = 50000;
  const std::string plain = Joined(Records(20, 2000));
  const std::string mixed =
      Gzipped(Records(20, 3000)) + ForeignMember(Record(100, 5000));
  Build({Write("a.warc", plain), Write("b.warc.gz", mixed)});
  const std::string other = directory_ / "other.quire";
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const BuildSummary recompressed,
      RecompressArchive(other, archive, SmallBuildOptions("lz4", 70000)));
  EXPECT_EQ(recompressed.deposits.file_count, 2);
  EXPECT_EQ(recompressed.deposits.lost_count, 0);
  ExpectFile(other, "a.warc", plain);
  ExpectFile(other, "b.warc.gz", mixed);
  EXPECT_THAT(Damages(other), IsEmpty());
  // As an input, with a new order of its text.
  const std::string third = directory_ / "third.quire";
  BuildOptions options = SmallBuildOptions("zstd:1", 90000);
  options.deposits = DepositMode::kAuto;
  options.reorder = ReorderMode::kDuplicates;
  QUIRE_ASSERT_OK_AND_ASSIGN(const BuildSummary built,
                             BuildArchive(third, Open({other}), options));
  EXPECT_EQ(built.deposits.file_count, 2);
  ExpectFile(third, "a.warc", plain);
  ExpectFile(third, "b.warc.gz", mixed);
  EXPECT_THAT(Damages(third), IsEmpty());
}

TEST_F(DepositsTest, JoinsParts) {
  const std::string first = Gzipped(Records(20, 3000));
  const std::string second = Gzipped(Records(20, 3000, 50), 9);
  options_.segment_size_bytes = 30000;
  Build({Write("a.warc.gz", first)});
  const std::string part = directory_ / "part.quire";
  QUIRE_ASSERT_OK(
      BuildLike(path_, 100, part, Open({Write("b.warc.gz", second)}), options_)
          .status());
  const std::string all = directory_ / "all.quire";
  const std::vector<std::string> parts = {path_, part};
  QUIRE_ASSERT_OK(JoinArchives(all, parts, false, nullptr).status());
  ExpectFile(all, "a.warc.gz", first);
  ExpectFile(all, "b.warc.gz", second);
}

TEST_F(DepositsTest, ExpandsDirectories) {
  const std::string gzip = Gzipped(Records(20, 3000));
  const std::string other = Gzipped(Records(5, 3000, 50));
  Write("in/crawls/a.warc.gz", gzip);
  Write("in/b.warc.gz", other);
  Write("in/c.txt", "text");
  SourceOptions options;
  options.expand = true;
  const DepositSummary summary = Build({directory_ / "in"}, options);
  EXPECT_EQ(summary.file_count, 2);
  ExpectFile("crawls/a.warc.gz", gzip);
  ExpectFile("b.warc.gz", other);
}

// Records that a rule leaves out are in no file either.
TEST_F(DepositsTest, DropsFilesOfWhichRecordsAreLeftOut) {
  SourceOptions options;
  IdRuleOptions rules;
  rules.exclude_globs = {"**/7"};
  QUIRE_ASSERT_OK_AND_ASSIGN(options.id_rules, IdRules::Create(rules));
  options_.deposits = DepositMode::kAll;
  options_.segment_size_bytes = 10000;
  const DepositSummary summary =
      Build({Write("a.warc.gz", Gzipped(Records(20, 3000)))}, options);
  EXPECT_EQ(summary.file_count, 0);
  EXPECT_EQ(summary.lost_count, 1);
  EXPECT_THAT(summary.refusals, ElementsAre(HasSubstr("some were left out")));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  EXPECT_THAT(archive->deposited_files().files(), IsEmpty());
  EXPECT_TRUE(archive->deposited_files().incomplete_files().empty());
}

TEST_F(DepositsTest, FindsDamagedFiles) {
  const std::string gzip = Gzipped(Records(20, 3000));
  Build({Write("a.warc.gz", gzip)});
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  const DepositPageEntry& page =
      archive->ReaderOf(0).deposits().portions().front().pages.front();
  const Extent extent = archive->ReaderOf(0).PartExtent(page.part);
  std::fstream file(path_ + "/segment-00000000",
                    std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(extent.offset.value));
  file.put('\x55').put('\x55');
  file.close();
  EXPECT_THAT(Damages(path_), ::testing::Contains(HasSubstr("checksum")));
}

}  // namespace
}  // namespace quire
