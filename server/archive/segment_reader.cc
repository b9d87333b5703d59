// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/segment_reader.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "server/archive/format/block_frame.h"
#include "server/archive/format/column.h"
#include "server/archive/format/section_compression.h"
#include "server/archive/index/id_index.h"
#include "server/archive/index/slice_counter.h"

namespace quire {
namespace {

// Upper bound on the objects of a segment without their arrays, with a path of
// about a hundred bytes.
constexpr uint64_t kSegmentFixedMemoryBytes = 3 << 10;

absl::Status Differs(absl::string_view what, uint64_t found,
                     uint64_t expected) {
  return absl::DataLossError(
      absl::StrCat(what, " is ", found, ", the manifest says ", expected,
                   ": the file belongs to another archive, or is damaged"));
}

absl::Status CompareWithManifest(const SegmentHeader& header,
                                 const Manifest& manifest,
                                 const ManifestSegment& expected) {
  if (header.number != expected.number) {
    return Differs("segment number", header.number, expected.number);
  }
  if (header.block_size_bytes != manifest.block_size_bytes) {
    return Differs("block size", header.block_size_bytes,
                   manifest.block_size_bytes);
  }
  if (header.codec_id != static_cast<uint32_t>(manifest.codec.id)) {
    return Differs("codec", header.codec_id,
                   static_cast<uint32_t>(manifest.codec.id));
  }
  if (header.partition_size_bytes != manifest.codec.partition_size_bytes) {
    return Differs("partition size", header.partition_size_bytes,
                   manifest.codec.partition_size_bytes);
  }
  const uint64_t dictionary_hash =
      manifest.dictionary.has_value() ? manifest.dictionary->hash : 0;
  if (header.dictionary_hash != dictionary_hash) {
    return ChecksumMismatch("checksum of the dictionary",
                            header.dictionary_hash, dictionary_hash);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SegmentReader> SegmentReader::Open(
    const SegmentFile& file, const Manifest& manifest,
    const ManifestSegment& expected, const std::atomic<bool>* cancel,
    std::vector<absl::Status>* index_damages) {
  QUIRE_RETURN_IF_ERROR(CheckFileSize(file.file, expected.file_size_bytes));
  SegmentReader segment;
  segment.file_ = file.file.path;
  segment.fd_ = file.file.fd.get();
  segment.direct_fd_ = file.direct.fd.get();
  segment.direct_alignment_bytes_ = file.direct.alignment_bytes;
  constexpr uint64_t kSizeMin = kSegmentHeaderSizeBytes + kTrailerSizeBytes;
  if (expected.file_size_bytes < kSizeMin) {
    return absl::DataLossError(
        absl::StrCat(segment.file_, ": is ", expected.file_size_bytes,
                     " bytes long, expected at least ", kSizeMin,
                     "; restore the archive from a copy"));
  }
  QUIRE_RETURN_IF_ERROR(
      InFile(segment.file_, segment.ReadHeader(manifest, expected)));
  QUIRE_RETURN_IF_ERROR(
      InFile(segment.file_, segment.ReadFooter(expected.file_size_bytes)));
  QUIRE_RETURN_IF_ERROR(InFile(segment.file_, segment.CheckFooter(expected)));
  QUIRE_RETURN_IF_ERROR(InFile(
      segment.file_, segment.ReadBlockSpans(manifest, expected, cancel)));
  QUIRE_RETURN_IF_ERROR(InFile(segment.file_, segment.ReadBlockSizes(cancel)));
  std::vector<absl::Status> damages;
  QUIRE_RETURN_IF_ERROR(
      InFile(segment.file_,
             segment.ReadDocumentIndex(
                 cancel, index_damages == nullptr ? nullptr : &damages)));
  for (const absl::Status& damage : damages) {
    index_damages->push_back(InFile(segment.file_, damage));
  }
  QUIRE_RETURN_IF_ERROR(
      InFile(segment.file_, segment.ReadLayout(expected, cancel)));
  QUIRE_RETURN_IF_ERROR(
      InFile(segment.file_, segment.CheckSlices(manifest.slices_per_mib_max)));
  const absl::Status container =
      InFile(segment.file_, segment.ReadContainer(cancel));
  if (absl::IsDataLoss(container) && index_damages != nullptr) {
    index_damages->push_back(container);
  } else {
    QUIRE_RETURN_IF_ERROR(container);
  }
  return segment;
}

absl::Status SegmentReader::ReadHeader(const Manifest& manifest,
                                       const ManifestSegment& expected) {
  std::array<uint8_t, kSegmentHeaderSizeBytes> header_bytes;
  QUIRE_RETURN_IF_ERROR(ReadExactly(fd_, 0, header_bytes, "header"));
  QUIRE_ASSIGN_OR_RETURN(header_, ParseSegmentHeader(header_bytes));
  return CompareWithManifest(header_, manifest, expected);
}

absl::Status SegmentReader::ReadFooter(uint64_t file_size_bytes,
                                       bool restores_magic) {
  const size_t tail_size_bytes = static_cast<size_t>(std::min<uint64_t>(
      kFooterSizeBytesMax, file_size_bytes - kSegmentHeaderSizeBytes));
  std::vector<uint8_t> tail(tail_size_bytes);
  QUIRE_RETURN_IF_ERROR(
      ReadExactly(fd_, file_size_bytes - tail_size_bytes, tail, "footer"));
  if (restores_magic) {
    RestoreEndMagic(tail);
  }
  const ByteView bytes = tail;
  QUIRE_ASSIGN_OR_RETURN(const size_t footer_size_bytes,
                         SegmentFooterSizeBytes(bytes.last(kTrailerSizeBytes)));
  if (footer_size_bytes > bytes.size()) {
    return absl::DataLossError(
        absl::StrCat("the footer has ", footer_size_bytes, " bytes, there are ",
                     bytes.size(), "; the file is damaged"));
  }
  QUIRE_ASSIGN_OR_RETURN(footer_,
                         ParseSegmentFooter(bytes.last(footer_size_bytes),
                                            file_size_bytes, header_.number));
  return absl::OkStatus();
}

absl::Status SegmentReader::CheckFooter(const ManifestSegment& expected) const {
  if (footer_.checksum != expected.footer_checksum) {
    return ChecksumMismatch("footer checksum", footer_.checksum,
                            expected.footer_checksum);
  }
  if (footer_.block_count != expected.block_count) {
    return Differs("block count", footer_.block_count, expected.block_count);
  }
  if (footer_.document_count != expected.document_count) {
    return Differs("document count", footer_.document_count,
                   expected.document_count);
  }
  if (footer_.size_bytes != expected.size_bytes) {
    return Differs("size", footer_.size_bytes, expected.size_bytes);
  }
  if (footer_.id_size_bytes != expected.id_size_bytes) {
    return Differs("size of ids", footer_.id_size_bytes,
                   expected.id_size_bytes);
  }
  if (footer_.derived_id_count != expected.derived_id_count) {
    return Differs("number of computed ids", footer_.derived_id_count,
                   expected.derived_id_count);
  }
  // The loaded sections must be those that the memory was estimated from.
  const bool same_sections = std::ranges::equal(
      footer_.sections, expected.sections,
      [](const SectionEntry& a, const ManifestSection& b) {
        return a.type == b.type && a.size_bytes == b.size_bytes &&
               a.stored_size_bytes == b.stored_size_bytes;
      });
  if (!same_sections) {
    return absl::DataLossError(
        "the section table differs from the one in the manifest");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> SegmentReader::ReadSection(
    const SectionEntry& entry, const std::atomic<bool>* cancel) const {
  const absl::string_view name = SectionName(entry.type);
  std::string stored(entry.stored_size_bytes, '\0');
  QUIRE_RETURN_IF_ERROR(
      ReadExactly(fd_, entry.offset, AsMutableBytes(stored), name));
  const uint64_t found = Checksum64(AsBytes(stored));
  if (found != entry.checksum) {
    return ChecksumMismatch(absl::StrCat(name, " checksum"), found,
                            entry.checksum);
  }
  auto section =
      Decompress(entry.method, AsBytes(stored), entry.size_bytes, cancel);
  QUIRE_RETURN_IF_ERROR(InFile(name, section.status()));
  return section;
}

absl::Status SegmentReader::ReadBlockSpans(const Manifest& manifest,
                                           const ManifestSegment& expected,
                                           const std::atomic<bool>* cancel) {
  if (footer_.block_count == 0) {
    return absl::OkStatus();
  }
  const SectionEntry* const spans = footer_.Find(SectionType::kBlockSpans);
  if (spans == nullptr) {
    return absl::DataLossError("there are blocks, but no block spans");
  }
  QUIRE_ASSIGN_OR_RETURN(const std::string section,
                         ReadSection(*spans, cancel));
  auto blocks = BlockSpans::Parse(
      AsBytes(section),
      {.block_count = expected.block_count,
       .size_bytes = expected.stored_text_size_bytes,
       .span_count = expected.span_count,
       .block_size_bytes_max = manifest.block_size_bytes_max});
  QUIRE_RETURN_IF_ERROR(InFile("block spans", blocks.status()));
  blocks_ = *std::move(blocks);
  return absl::OkStatus();
}

absl::Status SegmentReader::ReadBlockSizes(const std::atomic<bool>* cancel) {
  if (footer_.block_count == 0) {
    return absl::OkStatus();
  }
  const SectionEntry* const sizes = footer_.Find(SectionType::kBlockSizes);
  if (sizes == nullptr) {
    return absl::DataLossError("there are blocks, but no block index");
  }
  QUIRE_ASSIGN_OR_RETURN(const std::string section,
                         ReadSection(*sizes, cancel));
  return InFile("block index", ParseBlockSizes(AsBytes(section)));
}

absl::Status SegmentReader::ReadDocumentIndex(
    const std::atomic<bool>* cancel, std::vector<absl::Status>* index_damages) {
  const auto load =
      [&](SectionType type) -> absl::StatusOr<std::optional<std::string>> {
    const SectionEntry* entry = footer_.Find(type);
    if (entry == nullptr) {
      return std::nullopt;
    }
    return ReadSection(*entry, cancel);
  };
  QUIRE_ASSIGN_OR_RETURN(documents_,
                         DocumentIndex::Parse(footer_, load, index_damages));
  return absl::OkStatus();
}

absl::Status SegmentReader::ReadLayout(const ManifestSegment& expected,
                                       const std::atomic<bool>* cancel) {
  const SectionEntry* const entry = footer_.Find(SectionType::kLayout);
  if (entry == nullptr) {
    layout_ = SegmentLayout(footer_.size_bytes);
    return absl::OkStatus();
  }
  QUIRE_ASSIGN_OR_RETURN(const std::string section,
                         ReadSection(*entry, cancel));
  auto layout =
      SegmentLayout::Parse(AsBytes(section), footer_.size_bytes,
                           expected.stored_text_size_bytes, expected.run_count);
  QUIRE_RETURN_IF_ERROR(InFile("layout", layout.status()));
  layout_ = *std::move(layout);
  return absl::OkStatus();
}

absl::Status SegmentReader::ReadContainer(const std::atomic<bool>* cancel) {
  const SectionEntry* const directory =
      footer_.Find(SectionType::kContainerDirectory);
  if (directory == nullptr) {
    return absl::OkStatus();
  }
  const SectionEntry* const data = footer_.Find(SectionType::kContainerData);
  if (data == nullptr) {
    return Damaged("a container has a directory, but no data");
  }
  if (data->method != CompressionMethod::kNone) {
    return Damaged(absl::StrCat("container data are compressed by method ",
                                static_cast<uint32_t>(data->method),
                                ", expected none, 0"));
  }
  QUIRE_ASSIGN_OR_RETURN(const std::string section,
                         ReadSection(*directory, cancel));
  auto container =
      SegmentContainer::Parse(AsBytes(section), footer_.document_count,
                              footer_.size_bytes, data->stored_size_bytes);
  QUIRE_RETURN_IF_ERROR(InFile("container directory", container.status()));
  container_ = *std::move(container);
  container_offset_ = data->offset;
  return absl::OkStatus();
}

Extent SegmentReader::PartExtent(const ContainerPart& part) const {
  return {.fd = fd_,
          .offset = {container_offset_ + part.offset},
          .size_bytes = part.stored_size_bytes,
          .direct_fd = direct_fd_,
          .direct_alignment_bytes = direct_alignment_bytes_};
}

absl::StatusOr<std::vector<uint8_t>> SegmentReader::ReadStoredPart(
    const ContainerPart& part) const {
  std::vector<uint8_t> stored(part.stored_size_bytes);
  const std::string name = absl::StrCat(file_, ": container");
  QUIRE_RETURN_IF_ERROR(
      ReadExactly(fd_, container_offset_ + part.offset, stored, name));
  QUIRE_RETURN_IF_ERROR(InFile(name, CheckStoredPart(part, stored)));
  return stored;
}

absl::StatusOr<PartBytes> SegmentReader::ReadPart(
    const ContainerPart& part) const {
  std::vector<uint8_t> stored(part.stored_size_bytes);
  const std::string name = absl::StrCat(file_, ": container");
  QUIRE_RETURN_IF_ERROR(
      ReadExactly(fd_, container_offset_ + part.offset, stored, name));
  const auto raw = std::make_shared<std::vector<uint8_t>>(part.size_bytes);
  QUIRE_RETURN_IF_ERROR(InFile(name, DecodePart(part, stored, *raw)));
  return PartBytes{.owner = raw, .bytes = *raw};
}

absl::Status SegmentReader::ParseBlockSizes(ByteView section) {
  const uint64_t count = footer_.block_count;
  QUIRE_ASSIGN_OR_RETURN(const ColumnView sizes,
                         ColumnView::Parse(section, count));
  EliasFano::Builder frames(count + 1, footer_.blocks_end);
  uint64_t start = kSegmentHeaderSizeBytes;
  for (uint64_t i = 0; i < count; ++i) {
    frames.Add(start);
    const uint64_t left = footer_.blocks_end - start;
    if (sizes[i] == 0 || sizes[i] > BlockSizeBytes(i) ||
        left < kFrameOverheadSizeBytes + sizes[i]) {
      return absl::DataLossError(
          absl::StrCat("block ", i, " has ", sizes[i], " bytes of ", left));
    }
    start += kFrameOverheadSizeBytes + sizes[i];
  }
  if (start != footer_.blocks_end) {
    return absl::DataLossError(absl::StrCat("blocks end at byte ", start,
                                            ", expected ", footer_.blocks_end));
  }
  frames.Add(start);
  frames_ = std::move(frames).Build();
  return absl::OkStatus();
}

absl::Status SegmentReader::CheckSlices(uint32_t slices_per_mib_max) const {
  SliceCounter slices(blocks_);
  uint64_t start = 0;
  for (uint64_t run = 0;
       run < layout_.run_count() && slices.most() <= slices_per_mib_max &&
       !layout_.is_identity();
       ++run) {
    const SegmentLayout::StoredPiece piece = layout_.PieceOf(run, start);
    slices.AddRun(piece.stored_offset, piece.size_bytes);
    start += piece.size_bytes;
  }
  if (slices.most() > slices_per_mib_max) {
    return absl::DataLossError(
        absl::StrCat("1 MiB of its text touches ", slices.most(),
                     " slices, the manifest says at most ", slices_per_mib_max,
                     ": the file belongs to another archive, or is damaged"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TextChecksum>> SegmentReader::ReadTextChecksums()
    const {
  const SectionEntry* const entry = footer_.Find(SectionType::kTextChecksums);
  if (entry == nullptr) {
    return std::vector<TextChecksum>();
  }
  absl::StatusOr<std::string> section = ReadSection(*entry, nullptr);
  QUIRE_RETURN_IF_ERROR(InFile(file_, section.status()));
  auto checksums = ParseTextChecksums(AsBytes(*section), footer_.size_bytes);
  QUIRE_RETURN_IF_ERROR(
      InFile(file_, InFile("text checksums", checksums.status())));
  return checksums;
}

Extent SegmentReader::BlockExtent(uint64_t block_index) const {
  const uint64_t start = frames_[block_index];
  const uint64_t end = frames_[block_index + 1];
  return {.fd = fd_,
          .offset = {start},
          .size_bytes = static_cast<uint32_t>(end - start),
          .direct_fd = direct_fd_,
          .direct_alignment_bytes = direct_alignment_bytes_};
}

absl::Status SegmentReader::InBlock(uint64_t block_index,
                                    const absl::Status& status) const {
  if (status.ok()) {
    return status;
  }
  return absl::Status(
      status.code(),
      absl::StrCat(file_, ": block ", block_index, ": ", status.message(),
                   "; restore the file from a copy"));
}

absl::Status SegmentReader::DecodeBlock(uint64_t block_index, ByteView frame,
                                        std::span<const BlockPart> parts,
                                        const PayloadCodec& codec,
                                        PayloadCodec::Scratch& scratch) const {
  QUIRE_RETURN_IF_ERROR(InBlock(
      block_index, CheckFrame({header_.number, block_index}, frame).status()));
  const uint32_t raw_size = BlockSizeBytes(block_index);
  const absl::StatusOr<Payload> payload = ParseFrame(frame, raw_size);
  QUIRE_RETURN_IF_ERROR(InBlock(block_index, payload.status()));
  return InBlock(block_index,
                 codec.DecodeParts(*payload, raw_size, parts, scratch));
}

absl::Status SegmentReader::CheckBlock(uint64_t block_index,
                                       ByteView frame) const {
  QUIRE_RETURN_IF_ERROR(InBlock(
      block_index, CheckFrame({header_.number, block_index}, frame).status()));
  return InBlock(block_index,
                 ParseFrame(frame, BlockSizeBytes(block_index)).status());
}

absl::StatusOr<uint64_t> SegmentReader::ReadFrame(
    uint64_t block_index, std::vector<uint8_t>& frame) const {
  const Extent extent = BlockExtent(block_index);
  if (frames_[block_index + 1] - frames_[block_index] >
      BlockSizeBytes(block_index) + kFrameOverheadSizeBytes) {
    // See OpenDamaged().
    return InBlock(block_index, absl::DataLossError("it was not found"));
  }
  frame.resize(extent.size_bytes);
  QUIRE_RETURN_IF_ERROR(
      ReadExactly(extent.fd, extent.offset.value, frame,
                  absl::StrCat(file_, ": block ", block_index)));
  const auto checksum = CheckFrame({header_.number, block_index}, frame);
  QUIRE_RETURN_IF_ERROR(InBlock(block_index, checksum.status()));
  return checksum;
}

absl::Status SegmentReader::DecodeCheckedFrame(
    uint64_t block_index, ByteView frame, MutableByteView raw,
    const PayloadCodec& codec, PayloadCodec::Scratch& scratch) const {
  return InBlock(block_index, DecodeFrame(frame, raw, codec, scratch));
}

void SegmentReader::AddMemory(ArchiveMemory& memory) const {
  // Includes the descriptions of the segment and its file.
  memory.block_index_bytes +=
      frames_.MemoryBytes() + blocks_.MemoryBytes() + sizeof(SegmentFile) +
      sizeof(*this) + 2 * file_.capacity() +
      footer_.sections.capacity() * sizeof(SectionEntry);
  memory.layout_bytes += layout_.MemoryBytes();
  documents_.AddMemory(memory);
  memory.document_attributes_bytes += container_.MemoryBytes();
}

uint64_t SegmentReader::EstimateMemoryBytes(const ManifestSegment& segment) {
  const uint64_t count = segment.document_count;
  const uint64_t entry_count = count - segment.derived_id_count;
  uint64_t size_bytes =
      kSegmentFixedMemoryBytes +
      EliasFano::EstimateBytes(segment.block_count + 1,
                               segment.file_size_bytes) +
      BlockSpans::EstimateBytes({.block_count = segment.block_count,
                                 .size_bytes = segment.stored_text_size_bytes,
                                 .span_count = segment.span_count}) +
      EliasFano::EstimateBytes(count + 1, segment.size_bytes + count) +
      SegmentLayout::EstimateBytes(segment.size_bytes,
                                   segment.stored_text_size_bytes,
                                   segment.run_count) +
      CaptureOrder::EstimateBytes(entry_count, count);
  for (const ManifestSection& section : segment.sections) {
    switch (static_cast<SectionType>(section.type)) {
      case SectionType::kDocumentIds:
        size_bytes += IdTable::EstimateBytes(entry_count, section.size_bytes,
                                             segment.id_size_bytes);
        break;
      case SectionType::kDocumentOrder:
        size_bytes += InvertiblePermutation::EstimateBytes(entry_count);
        break;
      case SectionType::kIdRuns:
        size_bytes += IdIndex::EstimateRunsBytes(section.size_bytes);
        break;
      case SectionType::kCaptureTimes:
        size_bytes +=
            DocumentIndex::EstimateTimesBytes(section.size_bytes, count);
        break;
      case SectionType::kMediaTypes:
      case SectionType::kRecordTypes:
        size_bytes += StringColumn::EstimateBytes(section.size_bytes, count);
        break;
      case SectionType::kContainerDirectory:
        size_bytes += SegmentContainer::EstimateBytes(section.size_bytes);
        break;
      default:
        break;
    }
  }
  return size_bytes;
}

uint64_t SegmentReader::EstimateOpeningBytes(const Manifest& manifest,
                                             const ManifestSegment& segment) {
  // Sections are parsed one by one, but some stay until others are parsed.
  uint64_t sections_bytes = 0;
  uint64_t decompressing_bytes = 0;
  for (const ManifestSection& section : segment.sections) {
    if ((section.type & kSectionIgnorableBit) != 0 &&
        section.type !=
            static_cast<uint32_t>(SectionType::kContainerDirectory)) {
      continue;
    }
    sections_bytes += section.size_bytes;
    decompressing_bytes = std::max(
        decompressing_bytes,
        section.stored_size_bytes + DecompressionBytes(section.size_bytes));
  }
  return sections_bytes + decompressing_bytes +
         BlockSpans::EstimateParsingBytes(segment.span_count) +
         SegmentLayout::EstimateParsingBytes(segment.run_count) +
         SliceCounter::EstimateBytes(manifest.slices_per_mib_max);
}

}  // namespace quire
