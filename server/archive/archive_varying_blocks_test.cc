// SPDX-License-Identifier: GPL-3.0-or-later
//
// Archives whose blocks vary in size.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "server/archive/archive.h"
#include "server/archive/archive_verifier.h"
#include "testing/archive/archive_testing.h"
#include "testing/archive/damaged_archive.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string HalfBytes(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string text(size, '\0');
  for (char& c : text) {
    c = static_cast<char>(random() % 16);
  }
  return text;
}

ArchiveWriterOptions SmallBlocks() {
  return {.codec = ParseCodecSpec("zstd").value(), .block_size_bytes = 4096};
}

// Blocks of 3 bytes to 100,000; "c" repeats parts of the others.
class ArchiveVaryingBlocksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string a = HalfBytes(120'000, 1);
    const std::string b = HalfBytes(12'000, 2);
    segments_ = {{{.id = "a", .text = a},
                  {.id = "b", .text = b},
                  {.id = "c", .text = b.substr(0, 6000) + a.substr(4096, 500)}},
                 {{.id = "plain", .text = a}, {.id = "end", .text = b}},
                 {{.id = "even", .text = b}}};
    const auto codec = MakePayloadCodec(SmallBlocks().codec, nullptr,
                                        CodecUse::kEncodeAndDecode);
    ASSERT_THAT(codec, IsOk());
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const auto writer,
        ArchiveWriter::Create(path_, SmallBlocks(), nullptr));
    QUIRE_ASSERT_OK(WriteTestSegment(
        segments_[0], a + b, {{132'000, 0}, {6000, 120'000}, {500, 4096}},
        {512, 100'000, 4096, 20'000, 600}, codec->get(), *writer));
    QUIRE_ASSERT_OK(WriteTestSegment(
        segments_[1], {70'000, 3, 4605, 50'000, 7000}, codec->get(), *writer));
    QUIRE_ASSERT_OK(
        WriteTestSegment(segments_[2], 4096, codec->get(), *writer));
    QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveInfo info, writer->Commit());
    EXPECT_EQ(info.format_version, 4u);
    EXPECT_TRUE(info.has_varying_blocks);
    EXPECT_EQ(info.block_size_bytes, 4096u);
    EXPECT_EQ(info.block_size_bytes_max, 100'000u);
    for (const TestSegment& segment : segments_) {
      for (const TestDocument& document : segment) {
        text_ += document.text;
      }
    }
  }

  std::vector<ArchiveDamage> Verify() const {
    std::vector<ArchiveDamage> damages;
    const auto report = VerifyArchive(
        path_, {},
        [&](const ArchiveDamage& damage) { damages.push_back(damage); });
    QUIRE_EXPECT_OK(report);
    return damages;
  }

  // Flips a bit of the segment at `offset`.
  void SpoilSpans(const std::string& file) const {
    const TestSegmentParts parts = PartsOf(path_).at(file);
    for (const TestPart& section : parts.sections) {
      if (section.name == "block spans") {
        Spoil("/" + file, section.offset);
      }
    }
  }

  void Spoil(const std::string& segment, uint64_t offset) const {
    std::string bytes = ReadTestFile(path_ + segment);
    bytes[offset] ^= 4;
    WriteTestFile(path_ + segment, bytes);
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "a.quire";
  std::vector<TestSegment> segments_;
  std::string text_;
};

TEST_F(ArchiveVaryingBlocksTest, ReadsEveryRange) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  ASSERT_EQ(archive->info().size_bytes, text_.size());
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; ++i) {
    const uint64_t offset = random() % (text_.size() + 1);
    const uint64_t size =
        random() % ((text_.size() - offset) >> random() % 12 | 1);
    QUIRE_ASSERT_OK_AND_ASSIGN(const std::string found,
                               ReadTestRange(*archive, {{offset}, size}));
    ASSERT_TRUE(found == text_.substr(offset, size)) << offset << " " << size;
  }
}

TEST_F(ArchiveVaryingBlocksTest, PlansByTheBlocksThatThereAre) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto slices,
                             archive->Plan({{510}, 100'010}));
  ASSERT_THAT(slices, SizeIs(3));
  EXPECT_EQ(slices[0].offset_in_block, 510u);
  EXPECT_EQ(slices[0].size_bytes, 2u);
  EXPECT_EQ(slices[1].size_bytes, 100'000u);
  EXPECT_EQ(slices[2].block, (BlockAddress{0, 2}));
  EXPECT_EQ(slices[2].size_bytes, 8u);
  EXPECT_EQ(archive->BlockSizeBytes({0, 2}), 4096u);
}

TEST_F(ArchiveVaryingBlocksTest, StatesTheMostSlicesOfAMebibyte) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  uint64_t most = 0;
  for (uint64_t start = 0; start < text_.size(); start += 132'000) {
    const uint64_t size = std::min<uint64_t>(138'500, text_.size() - start);
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto slices,
                               archive->Plan({{start}, size}));
    most = std::max<uint64_t>(most, slices.size());
  }
  EXPECT_GE(archive->info().slices_per_mib_max, most);
}

TEST_F(ArchiveVaryingBlocksTest, CountsTheSizesInItsMemory) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveOutline outline,
                             Archive::ReadOutline(path_));
  EXPECT_GE(outline.memory_bytes, archive->memory().total_bytes());
}

TEST_F(ArchiveVaryingBlocksTest, VerifyNamesTheDocumentsOfADamagedBlock) {
  EXPECT_THAT(Verify(), IsEmpty());
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  Spoil("/segment-00000001", archive->BlockExtent({1, 3}).offset.value + 30);
  const std::vector<ArchiveDamage> damages = Verify();
  ASSERT_THAT(damages, SizeIs(1));
  const uint64_t start = 138'500 + 70'000 + 3 + 4605;
  EXPECT_EQ(damages[0].lost, (LogicalRange{{start}, 50'000}));
  ASSERT_THAT(damages[0].documents, SizeIs(2));
  EXPECT_EQ(damages[0].documents[1].id, "end");
}

// Only the section records the size of each block's text.
TEST_F(ArchiveVaryingBlocksTest, VerifySaysThatAllIsLostWithTheSizes) {
  SpoilSpans("segment-00000001");
  const std::vector<ArchiveDamage> damages = Verify();
  ASSERT_THAT(damages, SizeIs(1));
  EXPECT_THAT(std::string(damages[0].status.message()),
              HasSubstr("segment-00000001: block spans checksum is"));
  EXPECT_EQ(damages[0].lost, (LogicalRange{{138'500}, 132'000}));
  EXPECT_EQ(damages[0].document_count, 2u);
}

// Without the sizes, a damaged frame has no known offset in the text either.
TEST_F(ArchiveVaryingBlocksTest, VerifyFindsDamagedFramesWithoutTheSizes) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  SpoilSpans("segment-00000001");
  Spoil("/segment-00000001", archive->BlockExtent({1, 1}).offset.value + 5);
  const std::vector<ArchiveDamage> damages = Verify();
  ASSERT_THAT(damages, SizeIs(2));
  EXPECT_EQ(damages[1].block, (BlockAddress{1, 1}));
  EXPECT_EQ(damages[1].lost.size_bytes, 0u);
}

// The manifest proves the sizes if only the section table is lost.
TEST_F(ArchiveVaryingBlocksTest, VerifyKnowsTheSizesWithoutTheTable) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  Spoil("/segment-00000001", archive->BlockExtent({1, 1}).offset.value + 5);
  Spoil("/segment-00000001",
        ReadTestFile(path_ + "/segment-00000001").size() - 20);
  const std::vector<ArchiveDamage> damages = Verify();
  ASSERT_THAT(damages, SizeIs(2));
  EXPECT_THAT(std::string(damages[0].status.message()),
              HasSubstr("segment-00000001: footer checksum is"));
  EXPECT_EQ(damages[0].lost.size_bytes, 0u);
  EXPECT_EQ(damages[1].lost, (LogicalRange{{138'500 + 70'000}, 3}));
}

// The short block of two spans can be the first.
TEST(ArchiveShortBlockTest, VerifyDecodesEachBlockWithItsSize) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a";
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto codec,
                             MakePayloadCodec(SmallBlocks().codec, nullptr,
                                              CodecUse::kEncodeAndDecode));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto writer, ArchiveWriter::Create(path, SmallBlocks(), nullptr));
  QUIRE_ASSERT_OK(
      WriteTestSegment({{.id = "a", .text = HalfBytes(500 + 4 * 4096, 5)}},
                       {500, 4096}, codec.get(), *writer));
  QUIRE_ASSERT_OK(writer->Commit());
  const TestSegmentParts parts = PartsOf(path).at("segment-00000000");
  const std::string file = path + "/segment-00000000";
  std::string bytes = ReadTestFile(file);
  bytes[parts.blocks[1].offset + 30] ^= 1;
  for (const TestPart& section : parts.sections) {
    if (section.name == "block spans") {
      bytes[section.offset] ^= 1;
    }
  }
  WriteTestFile(file, bytes);
  std::vector<ArchiveDamage> damages;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const VerifyReport report,
      VerifyArchive(path, {}, [&](const ArchiveDamage& damage) {
        damages.push_back(damage);
      }));
  EXPECT_EQ(report.good_block_count, 4u);
  ASSERT_THAT(damages, SizeIs(2));
  EXPECT_EQ(damages[1].lost, (LogicalRange{{500}, 4096}));
}

TEST(ArchiveWriterVaryingBlocksTest, KeepsWhatTheBuildFound) {
  const TemporaryDirectory directory;
  FoundMembers zlib = {.container = DeflateContainer::kZlib,
                       .count = 1,
                       .size_bytes = 2,
                       .text_size_bytes = 3};
  for (size_t i = 0; i < zlib.refused.size(); ++i) {
    zlib.refused[i] = {7 + i, 8};
  }
  const std::vector<FoundMembers> found = {
      zlib, {.container = DeflateContainer::kGzip, .count = 9}};
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto writer,
      ArchiveWriter::Create(directory / "a", SmallBlocks(), nullptr));
  writer->SetFoundMembers(found);
  QUIRE_ASSERT_OK(writer->Commit().status());
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                             Archive::Open(directory / "a"));
  EXPECT_EQ(archive->info().found_members, found);
}

TEST(ArchiveWriterVaryingBlocksTest, RefusesSizesOutOfBounds) {
  const TemporaryDirectory directory;
  const std::string text = HalfBytes(kBlockSizeBytesMax + 1, 1);
  const auto write = [&](const std::vector<size_t>& sizes) -> absl::Status {
    ArchiveWriterOptions options = SmallBlocks();
    options.replace = true;
    auto writer = ArchiveWriter::Create(directory / "a", options, nullptr);
    absl::Status status = writer.status();
    for (const size_t size : sizes) {
      if (status.ok()) {
        status = (*writer)->AppendBlock(AsBytes(text).first(size), {});
      }
    }
    return status;
  };
  QUIRE_EXPECT_OK(write({kBlockSizeBytesMax, 1, 512, 1}));
  for (const size_t size : {size_t{0}, size_t{kBlockSizeBytesMax} + 1}) {
    EXPECT_THAT(write({size}), HasCode(absl::StatusCode::kInvalidArgument));
  }
}

}  // namespace
}  // namespace quire
