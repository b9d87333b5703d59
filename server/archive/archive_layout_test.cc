// SPDX-License-Identifier: GPL-3.0-or-later
//
// Archives whose text is not stored in its own order.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "server/archive/archive.h"
#include "server/archive/archive_verifier.h"
#include "testing/archive/archive_testing.h"
#include "testing/base/noise.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Blocks of 4 KiB: "a" is in the first four, "b" in the next three; "c" repeats
// them alternately.
class ArchiveLayoutTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec("zstd").value();
    options.block_size_bytes = 4096;
    const std::string a = Noise(16384, 1);
    const std::string b = Noise(12000, 2);
    segments_ = {
        {{.id = "a", .text = a},
         {.id = "b", .text = b},
         {.id = "c",
          .text = b.substr(0, 6000) + a.substr(4096, 5000) + b.substr(6000)}},
        {{.id = "plain", .text = b}}};
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const auto codec,
        MakePayloadCodec(options.codec, nullptr, CodecUse::kEncodeAndDecode));
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto writer,
                               ArchiveWriter::Create(path_, options, nullptr));
    QUIRE_ASSERT_OK(WriteTestSegment(
        segments_[0], a + b,
        {{28384, 0}, {6000, 16384}, {5000, 4096}, {6000, 22384}}, 4096,
        codec.get(), *writer));
    QUIRE_ASSERT_OK(WriteTestSegment(segments_[1], 4096, codec.get(), *writer));
    QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveInfo info, writer->Commit());
    EXPECT_EQ(info.format_version, 4u);
    EXPECT_EQ(info.stored_text_size_bytes, 28384u + 12000u);
    EXPECT_EQ(info.run_count, 5u);
    EXPECT_TRUE(info.has_layout);
    for (const TestSegment& segment : segments_) {
      for (const TestDocument& document : segment) {
        text_ += document.text;
      }
    }
  }

  std::vector<ArchiveDamage> Verify() const {
    std::vector<ArchiveDamage> damages;
    VerifyOptions options;
    options.thread_count = 2;
    QUIRE_EXPECT_OK(VerifyArchive(
        path_, options,
        [&](const ArchiveDamage& damage) { damages.push_back(damage); }));
    return damages;
  }

  // Flips a bit of the payload of a block of the first segment.
  void SpoilBlock(uint64_t block_index) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
    const std::string name = path_ + "/segment-00000000";
    std::string bytes = ReadTestFile(name);
    bytes[archive->BlockExtent({0, block_index}).offset.value + 30] ^= 4;
    WriteTestFile(name, bytes);
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "a.quire";
  std::vector<TestSegment> segments_;
  std::string text_;
};

TEST_F(ArchiveLayoutTest, ReadsEveryRange) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  ASSERT_EQ(archive->info().size_bytes, text_.size());
  std::mt19937_64 random(3);
  for (int i = 0; i < 500; ++i) {
    const uint64_t offset = random() % (text_.size() + 1);
    const uint64_t size = random() % (text_.size() - offset + 1);
    QUIRE_ASSERT_OK_AND_ASSIGN(const std::string found,
                               ReadTestRange(*archive, {{offset}, size}));
    ASSERT_TRUE(found == text_.substr(offset, size)) << offset << " " << size;
  }
}

TEST_F(ArchiveLayoutTest, CountsTheLayoutInItsMemory) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  EXPECT_GT(archive->memory().layout_bytes, 0u);
  QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveOutline outline,
                             Archive::ReadOutline(path_));
  EXPECT_GE(outline.memory_bytes, archive->memory().total_bytes());
}

TEST_F(ArchiveLayoutTest, VerifyFindsItWhole) {
  EXPECT_THAT(Verify(), IsEmpty());
}

TEST_F(ArchiveLayoutTest, VerifyNamesAllDocumentsOfADamagedBlock) {
  SpoilBlock(1);
  const std::vector<ArchiveDamage> damages = Verify();
  ASSERT_THAT(damages, SizeIs(1));
  EXPECT_EQ(damages[0].lost, (LogicalRange{{4096}, 4096}));
  EXPECT_EQ(damages[0].further_lost_count, 1u);
  EXPECT_EQ(damages[0].further_lost_size_bytes, 4096u);
  ASSERT_THAT(damages[0].documents, SizeIs(2));
  EXPECT_EQ(damages[0].documents[0].id, "a");
  EXPECT_EQ(damages[0].documents[1].id, "c");
}

// Two parts of one document count as one document.
TEST_F(ArchiveLayoutTest, VerifyCountsADocumentOnce) {
  // Bytes 20480 to 24575 of the stored text: they belong to b and to both
  // halves of c.
  SpoilBlock(5);
  const std::vector<ArchiveDamage> damages = Verify();
  ASSERT_THAT(damages, SizeIs(1));
  EXPECT_EQ(damages[0].further_lost_count, 2u);
  EXPECT_EQ(damages[0].document_count, 2u);
}

TEST_F(ArchiveLayoutTest, VerifySaysThatAllIsLostWithTheLayout) {
  const std::string name = path_ + "/segment-00000000";
  std::string bytes = ReadTestFile(name);
  bytes[bytes.size() - 20] ^= 4;
  WriteTestFile(name, bytes);
  const std::vector<ArchiveDamage> damages = Verify();
  ASSERT_THAT(damages, SizeIs(1));
  EXPECT_THAT(std::string(damages[0].status.message()),
              HasSubstr("segment-00000000: footer checksum is"));
  EXPECT_EQ(damages[0].lost.size_bytes, text_.size() - 12000);
  EXPECT_EQ(damages[0].document_count, 3u);
}

TEST(ArchiveWriterLayoutTest, OneRunMakesASegmentWithoutLayout) {
  const TemporaryDirectory directory;
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("zstd").value();
  const std::string text = Noise(10000, 4);
  for (const bool with_layout : {false, true}) {
    const std::string path = directory / (with_layout ? "with" : "without");
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto writer,
                               ArchiveWriter::Create(path, options, nullptr));
    const TestSegment segment = {{.id = "x", .text = text}};
    QUIRE_ASSERT_OK(with_layout
                        ? WriteTestSegment(segment, text, {{10000, 0}}, 65536,
                                           nullptr, *writer)
                        : WriteTestSegment(segment, 65536, nullptr, *writer));
    QUIRE_ASSERT_OK(writer->Commit().status());
  }
  for (const char* file : {"/MANIFEST", "/segment-00000000"}) {
    EXPECT_TRUE(ReadTestFile(directory / "with" + file) ==
                ReadTestFile(directory / "without" + file));
  }
}

TEST(ArchiveWriterLayoutTest, RefusesALayoutThatDoesNotFit) {
  const TemporaryDirectory directory;
  const ArchiveWriterOptions options = {.codec =
                                            ParseCodecSpec("zstd").value()};
  const std::string text = Noise(10000, 4);
  const TestSegment segment = {{.id = "x", .text = text + text}};
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto writer,
      ArchiveWriter::Create(directory / "a", options, nullptr));
  EXPECT_THAT(WriteTestSegment(segment, text, {{10000, 0}, {9999, 0}}, 65536,
                               nullptr, *writer),
              HasCode(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace quire
