// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/blocks/block_stage.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "server/archive/archive.h"
#include "server/ingest/testing/ingest_testing.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::ElementsAre;

constexpr uint32_t kBlockSize = 4096;
constexpr uint64_t kBlockCount = 24;

// Encodes every third block, identified by its first byte, incorrectly.
class BrokenCodec final : public BlockCodec {
 public:
  enum class Fault { kOtherText, kTruncated, kEmpty };

  BrokenCodec(std::unique_ptr<BlockCodec> codec, Fault fault)
      : codec_(std::move(codec)), fault_(fault) {}

  static bool Breaks(ByteView raw) { return raw[0] % 3 == 0; }

  const CodecInfo& info() const override { return codec_->info(); }

  size_t StoredSizeMax(size_t raw_size) const override {
    return codec_->StoredSizeMax(raw_size);
  }

  std::unique_ptr<Scratch> NewScratch() const override {
    return codec_->NewScratch();
  }

  size_t MemoryBytes() const override { return codec_->MemoryBytes(); }

  absl::StatusOr<size_t> Encode(ByteView raw, MutableByteView stored,
                                Scratch& scratch) const override {
    std::vector<uint8_t> text(raw.begin(), raw.end());
    const bool breaks = Breaks(raw);
    if (breaks && fault_ == Fault::kOtherText) {
      text.back() ^= 1;
    }
    const auto size = codec_->Encode(text, stored, scratch);
    if (breaks && size.ok() && fault_ == Fault::kTruncated) {
      return *size - 1;
    }
    return breaks && fault_ == Fault::kEmpty ? 0 : size;
  }

  absl::Status Decode(ByteView stored, MutableByteView raw,
                      Scratch& scratch) const override {
    return codec_->Decode(stored, raw, scratch);
  }

 private:
  const std::unique_ptr<BlockCodec> codec_;
  const Fault fault_;
};

std::unique_ptr<PayloadCodec> Codec(const char* name) {
  return MakePayloadCodec(*ParseCodecSpec(name), nullptr,
                          CodecUse::kEncodeAndDecode)
      .value();
}

std::unique_ptr<PayloadCodec> MakeBroken(BrokenCodec::Fault fault) {
  const CodecSpec spec = *ParseCodecSpec("zlib");
  return MakePayloadCodec(
      std::make_unique<BrokenCodec>(
          MakeBlockCodec(spec, nullptr, CodecUse::kEncodeAndDecode).value(),
          fault),
      spec);
}

std::string BlockText(uint64_t index) {
  std::string text = MakeTestText(kBlockSize, index);
  text[0] = static_cast<char>('a' + index);
  return text;
}

struct Staged {
  uint64_t mismatched_count = 0;
  uint64_t raw_count = 0;
};

// Writes the blocks from number `first` on as a document, with `codec`.
absl::StatusOr<Staged> Write(const std::string& path, const PayloadCodec& codec,
                             const Archive* copied = nullptr,
                             uint64_t first = 0) {
  ArchiveWriterOptions options;
  options.codec = *ParseCodecSpec("zlib");
  options.block_size_bytes = kBlockSize;
  auto writer = ArchiveWriter::Create(path, options, nullptr);
  if (!writer.ok()) {
    return writer.status();
  }
  Staged built;
  auto stage = BlockStage::Create(
      codec, **writer,
      {.block_size_bytes = kBlockSize, .threads = 2, .copied = copied},
      [&built](const StagedBlock& block) {
        built.raw_count += block.is_raw ? 1 : 0;
      });
  EXPECT_THAT(stage, IsOk());
  for (uint64_t i = 0; i < kBlockCount; ++i) {
    const auto buffer = (*stage)->Buffer();
    if (!buffer.ok()) {
      return buffer.status();
    }
    const std::string text = BlockText(first + i);
    std::ranges::copy(AsBytes(text), buffer->begin());
    QUIRE_EXPECT_OK((*stage)->Advance(kBlockSize));
  }
  const absl::Status ended = (*stage)->EndSegment();
  if (!ended.ok()) {
    return ended;
  }
  built.mismatched_count = (*stage)->mismatched_block_count();
  QUIRE_EXPECT_OK((*writer)->AddDocument(
      {.id = "document", .size_bytes = kBlockCount * kBlockSize}));
  EXPECT_THAT((*writer)->Commit(), IsOk());
  return built;
}

void ExpectWhole(const std::string& path) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path));
  ASSERT_EQ(archive->info().block_count, kBlockCount);
  const auto scratch = archive->codec().NewScratch();
  for (uint64_t i = 0; i < kBlockCount; ++i) {
    std::string text(kBlockSize, '\0');
    QUIRE_ASSERT_OK(archive->ReadBlock({0, i}, AsMutableBytes(text), *scratch));
    EXPECT_TRUE(text == BlockText(i)) << i;
  }
}

uint64_t BrokenCount() {
  uint64_t count = 0;
  for (uint64_t i = 0; i < kBlockCount; ++i) {
    count += BrokenCodec::Breaks(AsBytes(BlockText(i))) ? 1 : 0;
  }
  return count;
}

TEST(BlockStageTest, ABugOfACodecCostsSizeNotText) {
  const TemporaryDirectory directory;
  for (const auto fault :
       {BrokenCodec::Fault::kOtherText, BrokenCodec::Fault::kTruncated,
        BrokenCodec::Fault::kEmpty}) {
    const std::string path =
        directory / absl::StrCat("archive-", static_cast<int>(fault));
    QUIRE_ASSERT_OK_AND_ASSIGN(const Staged built,
                               Write(path, *MakeBroken(fault)));
    EXPECT_EQ(built.mismatched_count, BrokenCount());
    EXPECT_EQ(built.raw_count, BrokenCount());
    ExpectWhole(path);
  }
}

TEST(BlockStageTest, ComparesBlocksThatItCopies) {
  const TemporaryDirectory directory;
  QUIRE_ASSERT_OK(Write(directory / "from", *Codec("zlib")).status());
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto from,
                             Archive::Open(directory / "from"));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Staged good, Write(directory / "good", *Codec("zlib"), from.get()));
  EXPECT_EQ(good.mismatched_count, 0u);
  // Its blocks have other text: they are encoded anew.
  QUIRE_ASSERT_OK(
      Write(directory / "other", *Codec("zlib"), nullptr, 1).status());
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto other,
                             Archive::Open(directory / "other"));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Staged bad, Write(directory / "bad", *Codec("zlib"), other.get()));
  EXPECT_EQ(bad.mismatched_count, 0u);
  EXPECT_EQ(bad.raw_count, 0u);
  ExpectWhole(directory / "bad");
}

TEST(BlockStageTest, TakesWholeBlocksInOrder) {
  const TemporaryDirectory directory;
  QUIRE_ASSERT_OK(Write(directory / "from", *Codec("zlib")).status());
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto from,
                             Archive::Open(directory / "from"));
  const auto codec = Codec("zlib");
  ArchiveWriterOptions options;
  options.codec = *ParseCodecSpec("zlib");
  options.block_size_bytes = kBlockSize;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto writer,
      ArchiveWriter::Create(directory / "to", options, nullptr));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto stage,
      BlockStage::Create(*codec, *writer,
                         {.block_size_bytes = kBlockSize, .threads = 2},
                         [](const StagedBlock&) {}));
  // Three blocks of a text, a payload that has its text and one that has not,
  // and a payload of which only the size is known.
  const std::string text = BlockText(0) + BlockText(1) + "the end";
  std::vector<uint8_t> frame;
  const auto payload = [&](uint64_t index) {
    return from->ReadPayload({0, index}, frame).value();
  };
  QUIRE_ASSERT_OK(stage->EncodeText(AsBytes(text)));
  QUIRE_ASSERT_OK(stage->CopyIfDecodable(AsBytes(BlockText(2)), payload(2)));
  QUIRE_ASSERT_OK(stage->CopyIfDecodable(AsBytes(BlockText(3)), payload(4)));
  QUIRE_ASSERT_OK(stage->Copy(kBlockSize, payload(5)));
  QUIRE_ASSERT_OK(stage->EncodeText({}));
  QUIRE_ASSERT_OK(stage->EndSegment());
  EXPECT_EQ(stage->reencoded_block_count(), 1u);
  const std::string all = text + BlockText(2) + BlockText(3) + BlockText(5);
  QUIRE_ASSERT_OK(writer->AddDocument({.id = "a", .size_bytes = all.size()}));
  QUIRE_ASSERT_OK(writer->Commit().status());
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto to, Archive::Open(directory / "to"));
  const auto scratch = to->codec().NewScratch();
  std::string found;
  std::vector<uint32_t> sizes;
  for (uint64_t i = 0; i < to->info().block_count; ++i) {
    sizes.push_back(to->BlockSizeBytes({0, i}));
    std::string block(sizes.back(), '\0');
    QUIRE_ASSERT_OK(to->ReadBlock({0, i}, AsMutableBytes(block), *scratch));
    found += block;
  }
  EXPECT_TRUE(found == all);
  EXPECT_THAT(sizes, ElementsAre(2733, 2733, 2733, 4096, 4096, 4096));
}

}  // namespace
}  // namespace quire
