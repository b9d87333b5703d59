// SPDX-License-Identifier: GPL-3.0-or-later
//
// Damages every byte of an archive in turn. Each time the archive must refuse
// to open, or refuse to read the block, with a message that names the file, or
// return exactly the same contents.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/archive.h"
#include "server/archive/archive_verifier.h"
#include "server/archive/archive_writer.h"
#include "testing/archive/archive_testing.h"
#include "testing/archive/crafted_archive.h"
#include "testing/base/no_more_threads.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// Returns all contents of an archive as one string; or the first error.
absl::StatusOr<std::string> Contents(const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(const auto archive, Archive::Open(path));
  QUIRE_ASSIGN_OR_RETURN(
      std::string contents,
      ReadTestRange(*archive, {{0}, archive->info().size_bytes}));
  absl::StrAppend(&contents, archive->info().uuid, "|",
                  FormatCodecSpec(archive->info().codec));
  archive->VisitDocuments("", std::nullopt, [&](const Document& document) {
    absl::StrAppend(&contents, "|", document.ordinal.value, " ",
                    document.range.offset.value, " ", document.range.size_bytes,
                    " ", document.capture_time_ms.value_or(-1), " ",
                    document.media_type, " ", document.record_type, " ",
                    document.id);
    return true;
  });
  return contents;
}

// Returns the text of a block in an archive without layouts.
LogicalRange BlockRangeIn(const Archive& archive, BlockAddress block) {
  uint64_t offset = block.block_index * archive.info().block_size_bytes;
  for (uint32_t s = 0; s < block.segment_index; ++s) {
    for (uint64_t i = 0; i < archive.SegmentBlockCount(s); ++i) {
      offset += archive.BlockSizeBytes({s, i});
    }
  }
  return {{offset}, archive.BlockSizeBytes(block)};
}

struct Verified {
  VerifyReport report;
  std::vector<ArchiveDamage> damages;
};

Verified Verify(const std::string& path, uint32_t thread_count = 3) {
  Verified verified;
  VerifyOptions options;
  options.thread_count = thread_count;
  const auto report = VerifyArchive(
      path, options,
      [&](const ArchiveDamage& damage) { verified.damages.push_back(damage); });
  EXPECT_THAT(report, IsOk());
  verified.report = report.value_or(VerifyReport{});
  EXPECT_EQ(verified.report.damage_count, verified.damages.size());
  return verified;
}

class ArchiveDamageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // Small once compressed: the test's time is quadratic in the size.
    const auto text = [](size_t size) {
      std::string result;
      while (result.size() < size) {
        absl::StrAppend(&result, "what follows ", result.size() / 900, "; ");
      }
      return result.substr(0, size);
    };
    segments_ = {
        {{.id = "b/1",
          .text = text(3000),
          .capture_time_ms = 1000,
          .record_type = "response",
          .media_type = "text/html"},
         {.id = "b/2", .text = text(2500), .media_type = "text/css"},
         {.id = "a", .capture_time_ms = 5000}},
        {{.id = "b/1", .text = text(100)}, {.id = "c", .text = text(9000)}}};
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec("rlz").value();
    options.block_size_bytes = 4096;
    const auto context = std::make_shared<CodecContext>(
        CodecContext{text(500), CraftedSymbolTable()});
    QUIRE_ASSERT_OK(WriteTestArchive(path_, options, segments_, context));
    QUIRE_ASSERT_OK_AND_ASSIGN(contents_, Contents(path_));
  }

  void SetByte(const std::string& file, size_t offset, char value) const {
    std::fstream out(path_ + "/" + file,
                     std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(static_cast<std::streamoff>(offset));
    out.put(value);
  }

  void ExpectNamedOrHarmless(const std::string& file) const {
    const auto found = Contents(path_);
    if (found.ok()) {
      EXPECT_EQ(*found, contents_);
      return;
    }
    EXPECT_TRUE(absl::IsDataLoss(found.status()) ||
                absl::IsFailedPrecondition(found.status()))
        << found.status();
    EXPECT_THAT(std::string(found.status().message()), HasSubstr(file));
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "a.quire";
  std::vector<TestSegment> segments_;
  std::string contents_;
};

TEST_F(ArchiveDamageTest, EveryFlippedBitIsNamedOrHarmless) {
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    const std::string file = entry.path().filename().string();
    const std::string good = ReadTestFile(entry.path().string());
    for (size_t i = 0; i < good.size(); ++i) {
      SCOPED_TRACE(absl::StrCat(file, " byte ", i));
      for (int bit = 0; bit < 8; ++bit) {
        SetByte(file, i, static_cast<char>(good[i] ^ (1 << bit)));
        ExpectNamedOrHarmless(file);
      }
      SetByte(file, i, good[i]);
    }
  }
}

TEST_F(ArchiveDamageTest, EveryTruncationIsNamed) {
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    const std::string file = entry.path().filename().string();
    const std::string good = ReadTestFile(entry.path().string());
    for (size_t size = good.size(); size-- > 0;) {
      SCOPED_TRACE(absl::StrCat(file, " cut to ", size));
      std::filesystem::resize_file(entry.path(), size);
      ExpectNamedOrHarmless(file);
      EXPECT_FALSE(Contents(path_).ok());
    }
    WriteTestFile(entry.path().string(), good);
  }
}

TEST_F(ArchiveDamageTest, NamesMissingFiles) {
  for (const char* file : {"segment-00000000", "segment-00000001"}) {
    const std::string name = path_ + "/" + file;
    const std::string good = ReadTestFile(name);
    std::filesystem::remove(name);
    EXPECT_THAT(Archive::Open(path_),
                FailsWith(absl::StatusCode::kDataLoss,
                          HasSubstr(absl::StrCat(file, ": is missing"))));
    WriteTestFile(name, good);
  }
  std::filesystem::remove(path_ + "/MANIFEST");
  EXPECT_THAT(Archive::Open(path_),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("MANIFEST: the file is missing")));
  // Without segments it is no archive.
  std::filesystem::remove(path_ + "/segment-00000000");
  std::filesystem::remove(path_ + "/segment-00000001");
  EXPECT_THAT(Archive::Open(path_), HasCode(absl::StatusCode::kNotFound));
}

TEST_F(ArchiveDamageTest, FindsBlocksInTheWrongPlace) {
  // Two blocks of equal stored size, swapped with their checksums.
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("copy").value();
  options.block_size_bytes = 4096;
  const std::string path = directory_ / "b.quire";
  QUIRE_ASSERT_OK(WriteTestArchive(
      path, options,
      {{{.id = "a",
         .text = std::string(4096, 'x') + std::string(4096, 'y')}}}));
  const std::string name = path + "/segment-00000000";
  const std::string good = ReadTestFile(name);
  constexpr size_t kFrame = 4096 + 12;
  WriteTestFile(name, good.substr(0, 48) + good.substr(48 + kFrame, kFrame) +
                          good.substr(48, kFrame) +
                          good.substr(48 + 2 * kFrame));
  EXPECT_THAT(Contents(path), FailsWith(absl::StatusCode::kDataLoss,
                                        HasSubstr("block 0: checksum is")));
}

// Any damaged bit in an index of ids or attributes: without the index, all text
// is found by range and by ordinal, and no document by a wrong id.
TEST_F(ArchiveDamageTest, OpensWithoutDamagedIndexesOfIdsAndAttributes) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto whole, Archive::Open(path_));
  const std::string file = "segment-00000000";
  const std::string good = ReadTestFile(path_ + "/" + file);
  std::set<std::string> damaged;
  for (size_t i = 0; i < good.size(); ++i) {
    SCOPED_TRACE(i);
    SetByte(file, i, static_cast<char>(good[i] ^ 1));
    const auto opened = Archive::Open(path_, {.without_damaged_indexes = true});
    if (opened.ok() && !(*opened)->index_damages().empty()) {
      EXPECT_THAT(Archive::Open(path_), HasCode(absl::StatusCode::kDataLoss));
      const Archive& archive = **opened;
      ASSERT_THAT(archive.index_damages(), SizeIs(1));
      const std::string message(archive.index_damages()[0].message());
      EXPECT_THAT(message, HasSubstr(file));
      damaged.insert(message.substr(message.find(": ") + 2, 12));
      const uint64_t size_bytes = whole->info().size_bytes;
      EXPECT_EQ(ReadTestRange(archive, {{0}, size_bytes}).value_or(""),
                ReadTestRange(*whole, {{0}, size_bytes}).value_or("none"));
      for (uint64_t ordinal = 0; ordinal < 5; ++ordinal) {
        QUIRE_ASSERT_OK_AND_ASSIGN(const Document found,
                                   archive.GetDocument({ordinal}));
        QUIRE_ASSERT_OK_AND_ASSIGN(const Document same,
                                   whole->GetDocument({ordinal}));
        EXPECT_EQ(found.range, same.range);
        EXPECT_TRUE(found.id == same.id || found.id.empty());
      }
      EXPECT_EQ(archive.FindDocument("", std::nullopt).count, 0u);
      EXPECT_EQ(archive.FindDocument("c", std::nullopt).ordinal->value, 4u);
      EXPECT_LE(archive.memory().total_bytes(), whole->memory().total_bytes());
      const Verified verified = Verify(path_);
      ASSERT_THAT(verified.damages, SizeIs(1));
      EXPECT_THAT(verified.damages[0].effect, HasSubstr("--skip-broken"));
      EXPECT_EQ(verified.report.good_size_bytes, size_bytes);
    }
    SetByte(file, i, good[i]);
  }
  EXPECT_THAT(damaged,
              ::testing::IsSupersetOf({"document ids", "capture time",
                                       "media types ", "record types"}));
}

TEST_F(ArchiveDamageTest, OtherBlocksStayReadable) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  ASSERT_GT(archive->SegmentBlockCount(1), 1u);
  const Extent extent = archive->BlockExtent({1, 0});
  const std::string name = path_ + "/segment-00000001";
  std::string bytes = ReadTestFile(name);
  bytes[extent.offset.value + 20] ^= 1;
  WriteTestFile(name, bytes);
  const auto scratch = archive->codec().NewScratch();
  std::vector<uint8_t> raw(archive->BlockSizeBytes({1, 0}));
  EXPECT_THAT(archive->ReadBlock({1, 0}, raw, *scratch),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("segment-00000001: block 0: checksum is")));
  raw.resize(archive->BlockSizeBytes({1, 1}));
  QUIRE_EXPECT_OK(archive->ReadBlock({1, 1}, raw, *scratch));
}

// --- Verification ---

TEST_F(ArchiveDamageTest, VerifyFindsNothingInAGoodArchive) {
  VerifyProgress last;
  VerifyOptions options;
  options.on_progress = [&](const VerifyProgress& progress) {
    last = progress;
  };
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const VerifyReport report,
      VerifyArchive(path_, options, [](const ArchiveDamage& damage) {
        ADD_FAILURE() << damage.status;
      }));
  EXPECT_EQ(report.good_block_count, report.info.block_count);
  EXPECT_EQ(report.good_size_bytes, report.info.size_bytes);
  EXPECT_EQ(last.blocks_done, report.info.block_count);
  EXPECT_EQ(last.blocks_total, report.info.block_count);
}

// Each block is verified by exactly one part, for any number of parts.
TEST_F(ArchiveDamageTest, PartsTogetherVerifyEachBlockOnce) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  for (uint32_t s = 0; s < 2; ++s) {
    const std::string name = absl::StrCat(path_, "/segment-0000000", s);
    std::string bytes = ReadTestFile(name);
    for (uint64_t i = 0; i < archive->SegmentBlockCount(s); ++i) {
      bytes[archive->BlockExtent({s, i}).offset.value + 8] ^= 1;
    }
    WriteTestFile(name, bytes);
  }
  const uint64_t block_count = archive->info().block_count;
  for (uint64_t parts = 1; parts <= block_count + 2; ++parts) {
    SCOPED_TRACE(parts);
    std::vector<std::optional<BlockAddress>> damaged;
    for (uint64_t i = 0; i < parts; ++i) {
      VerifyOptions options;
      options.part_index = i;
      options.part_count = parts;
      VerifyProgress last;
      options.on_progress = [&](const VerifyProgress& progress) {
        last = progress;
      };
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const VerifyReport report,
          VerifyArchive(path_, options, [&](const ArchiveDamage& damage) {
            damaged.push_back(damage.block);
          }));
      EXPECT_EQ(last.blocks_done, last.blocks_total);
      EXPECT_EQ(report.damaged_block_count, last.blocks_total);
      EXPECT_LE(last.blocks_total, block_count / parts + 1);
    }
    EXPECT_THAT(damaged, SizeIs(block_count));
    EXPECT_TRUE(std::ranges::is_sorted(damaged));
    EXPECT_EQ(std::ranges::adjacent_find(damaged), damaged.end());
  }
}

TEST_F(ArchiveDamageTest, VerifyDoesWithTheThreadsItGets) {
  VerifyOptions options;
  options.thread_count = 4;
  const NoMoreThreads none;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const VerifyReport report,
      VerifyArchive(path_, options, [](const ArchiveDamage& damage) {
        ADD_FAILURE() << damage.status;
      }));
  EXPECT_EQ(report.good_block_count, report.info.block_count);
}

TEST_F(ArchiveDamageTest, VerifyNamesBlocksAndTheirDocuments) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  const BlockAddress block = {1, 1};
  const std::string name = path_ + "/segment-00000001";
  std::string bytes = ReadTestFile(name);
  bytes[archive->BlockExtent(block).offset.value + 30] ^= 4;
  WriteTestFile(name, bytes);

  std::vector<uint64_t> expected;
  const LogicalRange lost = BlockRangeIn(*archive, block);
  for (uint64_t i = 0; i < archive->info().document_count; ++i) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const LogicalRange range,
                               archive->GetDocumentRange({i}));
    if (range.size_bytes > 0 &&
        range.offset.value < lost.offset.value + lost.size_bytes &&
        range.offset.value + range.size_bytes > lost.offset.value) {
      expected.push_back(i);
    }
  }
  const Verified verified = Verify(path_);
  ASSERT_THAT(verified.damages, SizeIs(1));
  const ArchiveDamage& damage = verified.damages[0];
  EXPECT_THAT(damage.status,
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("segment-00000001: block 1: checksum is")));
  EXPECT_EQ(damage.block, block);
  EXPECT_EQ(damage.lost, lost);
  EXPECT_EQ(damage.document_count, expected.size());
  std::vector<uint64_t> found;
  for (const Document& document : damage.documents) {
    found.push_back(document.ordinal.value);
    QUIRE_ASSERT_OK_AND_ASSIGN(const Document same,
                               archive->GetDocument(document.ordinal));
    EXPECT_EQ(document.id, same.id);
    EXPECT_EQ(document.range, same.range);
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(verified.report.damaged_block_count, 1u);
  EXPECT_EQ(verified.report.good_block_count, archive->info().block_count - 1);
}

TEST_F(ArchiveDamageTest, VerifyReadsBlocksWithoutIndexes) {
  const std::string name = path_ + "/segment-00000000";
  std::string bytes = ReadTestFile(name);
  bytes[bytes.size() - 20] ^= 4;
  WriteTestFile(name, bytes);
  const Verified verified = Verify(path_);
  ASSERT_THAT(verified.damages, SizeIs(1));
  EXPECT_THAT(std::string(verified.damages[0].status.message()),
              HasSubstr("segment-00000000: footer checksum is"));
  EXPECT_EQ(verified.damages[0].lost.size_bytes, 0u);
  EXPECT_EQ(verified.report.good_block_count, verified.report.info.block_count);
  EXPECT_EQ(verified.report.good_size_bytes, verified.report.info.size_bytes);
}

TEST_F(ArchiveDamageTest, VerifySaysWhatItCannotFind) {
  const std::string name = path_ + "/segment-00000001";
  std::string bytes = ReadTestFile(name);
  bytes.back() = 'x';
  bytes[48 + 3] = 0x40;
  WriteTestFile(name, bytes);
  const Verified verified = Verify(path_);
  ASSERT_THAT(verified.damages, SizeIs(2));
  EXPECT_THAT(std::string(verified.damages[1].status.message()),
              HasSubstr("blocks after it"));
  EXPECT_EQ(verified.damages[1].block, (BlockAddress{1, 0}));
  // The damaged footer names the documents.
  EXPECT_FALSE(verified.damages[1].is_document_count_exact);
  EXPECT_EQ(verified.damages[1].document_count, segments_[1].size());
  std::filesystem::remove(name);
  const Verified missing = Verify(path_);
  ASSERT_THAT(missing.damages, SizeIs(1));
  EXPECT_EQ(missing.damages[0].document_count, segments_[1].size());
  EXPECT_THAT(missing.damages[0].effect, HasSubstr("single point of loss"));
  EXPECT_EQ(missing.report.good_size_bytes + missing.damages[0].lost.size_bytes,
            missing.report.info.size_bytes);
}

TEST_F(ArchiveDamageTest, VerifySaysThatAllDependsOnTheDictionary) {
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    const std::string file = entry.path().filename().string();
    if (!absl::StartsWith(file, "dictionary-")) {
      continue;
    }
    const std::string good = ReadTestFile(entry.path().string());
    SetByte(file, good.size() / 2,
            static_cast<char>(good[good.size() / 2] ^ 1));
  }
  const Verified verified = Verify(path_);
  ASSERT_THAT(verified.damages, SizeIs(1));
  EXPECT_THAT(verified.damages[0].effect, HasSubstr("single point of loss"));
  EXPECT_EQ(verified.damages[0].lost.size_bytes,
            verified.report.info.size_bytes);
}

TEST_F(ArchiveDamageTest, VerifyFindsEveryFlippedBit) {
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    const std::string file = entry.path().filename().string();
    const std::string good = ReadTestFile(entry.path().string());
    for (size_t i = 0; i < good.size(); ++i) {
      SCOPED_TRACE(absl::StrCat(file, " byte ", i));
      SetByte(file, i, static_cast<char>(good[i] ^ (1 << (i % 8))));
      int damage_count = 0;
      const auto report =
          VerifyArchive(path_, {}, [&](const ArchiveDamage& damage) {
            EXPECT_THAT(std::string(damage.status.message()), HasSubstr(file));
            ++damage_count;
          });
      if (report.ok()) {
        EXPECT_GT(damage_count, 0);
      } else {
        EXPECT_THAT(std::string(report.status().message()), HasSubstr(file));
      }
      SetByte(file, i, good[i]);
    }
  }
}

TEST(CraftedArchiveTest, IsReadDespiteUnknownPartsAndNamesThem) {
  const TemporaryDirectory directory;
  const auto unknown_part_of = [&](const Crafted& made) {
    WriteCrafted(directory / "a", made);
    const auto archive = Archive::Open(directory / "a");
    QUIRE_EXPECT_OK(archive);
    return archive.ok() ? (*archive)->info().unknown_part : "";
  };
  EXPECT_EQ(unknown_part_of({}), "");
  Crafted section;
  section.SetSection(0x80000063, "anything");
  EXPECT_EQ(unknown_part_of(section),
            "segment 0 has a section of type 2147483747");
  Crafted field;
  field.edit_manifest_bytes = [](std::string& file) {
    // Field 99 of the message, an integer.
    file.insert(file.size() - 8, "\x98\x06\x01");
    file[12] = static_cast<char>(file[12] + 3);
    Reseal(file);
  };
  EXPECT_EQ(unknown_part_of(field), "the manifest has fields");
}

TEST(CraftedArchiveTest, KeepsItsHistoryAndItsWriter) {
  const TemporaryDirectory directory;
  Crafted made;
  made.edit_manifest = [](Manifest& manifest) {
    manifest.history = {{.uuid = {1}, .size_bytes = 2, .document_count = 0},
                        {.uuid = {2}, .size_bytes = 5, .document_count = 1}};
    manifest.segments[0].number = kSegmentNumberMax;
    manifest.next_segment_number = kSegmentNumberMax + 1;
  };
  made.header.number = kSegmentNumberMax;
  WriteCrafted(directory / "a", made);
  const std::string file = ReadTestFile(directory / "a" + "/MANIFEST");
  QUIRE_ASSERT_OK_AND_ASSIGN(const Manifest manifest,
                             ParseManifest(AsBytes(file)));
  ASSERT_EQ(manifest.history.size(), 2u);
  EXPECT_EQ(manifest.history[1].uuid[0], 2);
  EXPECT_EQ(manifest.history[1].size_bytes, 5u);
  EXPECT_EQ(manifest.writer, "make_golden");
  EXPECT_EQ(EncodeManifest(manifest), file);
  std::filesystem::rename(directory / "a" + "/segment-00000000",
                          directory / "a" + "/segment-16777215");
  QUIRE_EXPECT_OK(VerifyArchive(
      directory / "a", {},
      [](const ArchiveDamage& damage) { ADD_FAILURE() << damage.status; }));
}

// Counts that a writer never makes, in an undamaged archive.
TEST(CraftedArchiveTest, RefusesMembersOfNoBlockAndBlocksThatGrew) {
  const TemporaryDirectory directory;
  Crafted made;
  made.UseDictionary("dictionary text");
  made.UseCodec(CodecId::kAuto, "\x02hello", "hello you all");
  std::vector<MemberBlocks> members = {{CodecId::kCopy, 1, 13, 6}};
  made.edit_manifest = [&](Manifest& manifest) { manifest.members = members; };
  WriteCrafted(directory / "good", made);
  QUIRE_EXPECT_OK(Archive::Open(directory / "good"));
  members.push_back({.codec = CodecId::kLz4});
  WriteCrafted(directory / "member", made);
  EXPECT_THAT(Archive::Open(directory / "member"),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("member ")));
  members.pop_back();
  made.UseCodec(CodecId::kAuto, "\x02longer than its text", "hello you all");
  members[0].stored_size_bytes = made.stored.size();
  // A writer's frame would hold the text itself.
  made.edit_frame = [&](std::string& frame) {
    frame.insert(kFrameWordSizeBytes, made.stored.size() - made.text.size(),
                 'x');
  };
  WriteCrafted(directory / "grown", made);
  EXPECT_THAT(
      Archive::Open(directory / "grown"),
      FailsWith(absl::StatusCode::kDataLoss, HasSubstr("block 0 has ")));
}

}  // namespace
}  // namespace quire
