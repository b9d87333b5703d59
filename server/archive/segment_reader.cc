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
#include "codecs/base/varint.h"
#include "server/archive/format/block_frame.h"
#include "server/archive/format/column.h"
#include "server/archive/format/section_compression.h"
#include "server/archive/index/frame_search.h"
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

absl::Status CompareWithManifest(const SegmentFooter& footer,
                                 const ManifestSegment& expected) {
  if (footer.checksum != expected.footer_checksum) {
    return ChecksumMismatch("footer checksum", footer.checksum,
                            expected.footer_checksum);
  }
  if (footer.block_count != expected.block_count) {
    return Differs("block count", footer.block_count, expected.block_count);
  }
  if (footer.document_count != expected.document_count) {
    return Differs("document count", footer.document_count,
                   expected.document_count);
  }
  if (footer.size_bytes != expected.size_bytes) {
    return Differs("size", footer.size_bytes, expected.size_bytes);
  }
  if (footer.id_size_bytes != expected.id_size_bytes) {
    return Differs("size of ids", footer.id_size_bytes, expected.id_size_bytes);
  }
  if (footer.derived_id_count != expected.derived_id_count) {
    return Differs("number of computed ids", footer.derived_id_count,
                   expected.derived_id_count);
  }
  // The loaded sections must be those that the memory was estimated from.
  const bool same_sections = std::ranges::equal(
      footer.sections, expected.sections,
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

// Reads bytes of a damaged file; those that cannot be read become 0.
void ReadOrZero(int fd, uint64_t offset, MutableByteView out) {
  constexpr size_t kSectorSizeBytes = 4096;
  if (ReadExactly(fd, offset, out, "").ok()) {
    return;
  }
  while (!out.empty()) {
    const MutableByteView sector = out.first(std::min<size_t>(
        out.size(), kSectorSizeBytes - offset % kSectorSizeBytes));
    if (!ReadExactly(fd, offset, sector, "").ok()) {
      std::ranges::fill(sector, uint8_t{0});
    }
    offset += sector.size();
    out = out.subspan(sector.size());
  }
}

// Returns the method of a section whose table entry is lost.
CompressionMethod GuessMethod(ByteView stored, uint64_t size_bytes) {
  constexpr std::array<uint8_t, 4> kZstdMagic = {0x28, 0xB5, 0x2F, 0xFD};
  if (stored.size() == size_bytes) {
    return CompressionMethod::kNone;
  }
  return stored.size() >= kZstdMagic.size() &&
                 std::ranges::equal(stored.first(kZstdMagic.size()), kZstdMagic)
             ? CompressionMethod::kZstd
             : CompressionMethod::kXz;
}

// Decides which methods and checksums of sections the manifest's checksum of
// table and trailer proves: those of `footer`, which are those of the sections
// themselves, or those `stated` in the table. Each can be damaged alone. Sets
// them in `footer`; returns false, and leaves it as it is, if none is proved.
bool ProveTable(const std::vector<SectionEntry>& stated,
                const ManifestSegment& expected, SegmentFooter& footer) {
  constexpr size_t kChoicesMax = 12;
  const std::vector<SectionEntry> found = footer.sections;

  struct Choice {
    size_t index;
    bool is_method;
  };

  std::vector<Choice> choices;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i].checksum != stated[i].checksum) {
      choices.push_back({i, false});
    }
    if (found[i].method != stated[i].method) {
      choices.push_back({i, true});
    }
  }
  // A table that is wholly damaged has no right entry.
  const size_t count = choices.size() <= kChoicesMax ? choices.size() : 0;
  for (uint32_t taken = 0; taken < uint32_t{1} << count; ++taken) {
    footer.sections = found;
    for (size_t i = 0; i < count; ++i) {
      if ((taken >> i & 1) != 0) {
        SectionEntry& entry = footer.sections[choices[i].index];
        const SectionEntry& from = stated[choices[i].index];
        if (choices[i].is_method) {
          entry.method = from.method;
        } else {
          entry.checksum = from.checksum;
        }
      }
    }
    EncodeSegmentFooter(footer, expected.number);
    if (footer.checksum == expected.footer_checksum) {
      return true;
    }
  }
  footer.sections = found;
  return false;
}

// False for sections that only find blocks or verify text.
bool IsAboutDocuments(uint32_t type) {
  return type != static_cast<uint32_t>(SectionType::kBlockSizes) &&
         type != static_cast<uint32_t>(SectionType::kTextChecksums);
}

// Returns the sizes that the blocks of a segment can have whose spans are lost.
// A single span is certain; more are a guess that the blocks must prove.
std::vector<BlockSpans> PossibleBlocks(const ManifestSegment& expected,
                                       const Manifest& manifest) {
  const uint64_t count = expected.block_count;
  const uint64_t text_size_bytes = expected.stored_text_size_bytes;
  const uint64_t full_size_bytes = manifest.block_size_bytes;
  std::vector<BlockSpans> possible;
  if (expected.span_count <= 1 && text_size_bytes % count == 0 &&
      text_size_bytes / count <= manifest.block_size_bytes_max) {
    possible.emplace_back(
        std::vector<BlockSpan>{{count, text_size_bytes / count}});
  }
  const uint64_t rest_size_bytes = text_size_bytes % full_size_bytes;
  if (expected.span_count != 1 && rest_size_bytes != 0 && count > 1 &&
      count - 1 == text_size_bytes / full_size_bytes) {
    const BlockSpan full = {count - 1, full_size_bytes};
    const BlockSpan rest = {1, rest_size_bytes};
    possible.emplace_back(std::vector<BlockSpan>{full, rest});
    // Joined and inflated text can begin with a short block.
    possible.emplace_back(std::vector<BlockSpan>{rest, full});
  }
  return possible;
}

// Returns the number of spans of a section, which does not state it; 0 if they
// do not describe the segment.
uint64_t CountSpans(ByteView section, const ManifestSegment& segment) {
  // Two columns of equal length: their widths and their size give the length.
  if (section.size() < 2) {
    return 0;
  }
  const uint64_t first_width = section[0];
  for (uint64_t width = 0; width <= 8; ++width) {
    const uint64_t count =
        (section.size() - 2) / std::max<uint64_t>(first_width + width, 1);
    if (BlockSpans::Parse(section,
                          {.block_count = segment.block_count,
                           .size_bytes = segment.stored_text_size_bytes,
                           .span_count = count,
                           .block_size_bytes_max = kBlockSizeBytesMax})
            .ok()) {
      return count;
    }
  }
  return 0;
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
  QUIRE_RETURN_IF_ERROR(
      InFile(segment.file_, CompareWithManifest(segment.footer_, expected)));
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
  return segment;
}

absl::StatusOr<SegmentReader> SegmentReader::OpenDamaged(
    const SegmentFile& file, const Manifest& manifest,
    const ManifestSegment& expected, const PayloadCodec* codec,
    std::vector<absl::Status>& damages) {
  SegmentReader segment;
  QUIRE_RETURN_IF_ERROR(
      segment.RecoverBlocks(file, manifest, expected, codec, damages));
  std::vector<absl::Status> index_damages;
  QUIRE_RETURN_IF_ERROR(InFile(
      segment.file_, segment.ReadDocumentIndex(nullptr, &index_damages)));
  for (const absl::Status& status : index_damages) {
    damages.push_back(InFile(segment.file_, status));
  }
  if (expected.has_layout() !=
      (segment.footer_.Find(SectionType::kLayout) != nullptr)) {
    return InFile(segment.file_, absl::DataLossError("the layout is missing"));
  }
  QUIRE_RETURN_IF_ERROR(
      InFile(segment.file_, segment.ReadLayout(expected, nullptr)));
  return segment;
}

absl::StatusOr<BlockSpans> SegmentReader::RecoverBlockSpans(
    const SegmentFile& file, const Manifest& manifest,
    const ManifestSegment& expected, const PayloadCodec* codec) {
  SegmentReader segment;
  std::vector<absl::Status> damages;
  QUIRE_RETURN_IF_ERROR(
      segment.RecoverBlocks(file, manifest, expected, codec, damages));
  return std::move(segment.blocks_);
}

absl::Status SegmentReader::RecoverBlocks(const SegmentFile& file,
                                          const Manifest& manifest,
                                          const ManifestSegment& expected,
                                          const PayloadCodec* codec,
                                          std::vector<absl::Status>& damages) {
  file_ = file.file.path;
  fd_ = file.file.fd.get();
  const auto note = [&](const absl::Status& status) {
    if (!status.ok()) {
      damages.push_back(InFile(file_, status));
    }
    return status.ok();
  };
  if (const absl::Status size =
          CheckFileSize(file.file, expected.file_size_bytes);
      !size.ok()) {
    damages.push_back(size);
  }
  if (!note(ReadHeader(manifest, expected))) {
    // The seed of the checksums of blocks.
    header_.number = expected.number;
  }
  absl::Status footer = absl::DataLossError("it has no trailer");
  if (expected.file_size_bytes >= kSegmentHeaderSizeBytes + kTrailerSizeBytes) {
    footer = ReadFooter(expected.file_size_bytes);
  }
  if (footer.ok()) {
    footer = CompareWithManifest(footer_, expected);
  }
  if (!note(footer)) {
    std::vector<absl::Status> unproved;
    QUIRE_RETURN_IF_ERROR(InFile(
        file_, RecoverFooter(expected, file.file.size_bytes(), unproved)));
    for (const absl::Status& status : unproved) {
      note(status);
    }
  }
  const absl::Status spans = ReadBlockSpans(manifest, expected, nullptr);
  if (note(spans)) {
    note(RecoverFrames());
    return absl::OkStatus();
  }
  for (BlockSpans& possible : PossibleBlocks(expected, manifest)) {
    blocks_ = std::move(possible);
    const absl::Status frames = RecoverFrames();
    if (expected.span_count == 1 ||
        BlocksProveSizes(expected, manifest.block_size_bytes, codec)) {
      note(frames);
      return absl::OkStatus();
    }
  }
  return InFile(file_, spans);
}

absl::Status SegmentReader::RecoverFrames() {
  absl::Status status = ReadBlockSizes(nullptr);
  if (!status.ok()) {
    const auto read = [this](uint64_t offset, MutableByteView out) {
      ReadOrZero(fd_, offset, out);
    };
    frames_ =
        FrameSearch(read, header_.number, footer_.blocks_end, blocks_).Run();
  }
  return status;
}

bool SegmentReader::BlocksProveSizes(const ManifestSegment& expected,
                                     uint32_t block_size_bytes,
                                     const PayloadCodec* codec) const {
  const auto scratch = codec == nullptr ? nullptr : codec->NewScratch();
  std::vector<uint8_t> frame;
  std::vector<uint8_t> raw;
  uint64_t gap_count = 0;
  bool was_proved = true;
  for (uint64_t i = 0; i < block_count(); ++i) {
    const uint32_t size_bytes = BlockSizeBytes(i);
    bool is_proved = false;
    if (ReadFrame(i, frame).ok()) {
      raw.resize(size_bytes);
      const auto payload = ParseFrame(frame, size_bytes);
      is_proved = payload.ok() && (payload->is_raw || codec != nullptr);
      if (!payload.ok() || (is_proved && !payload->is_raw &&
                            !codec->Decode(*payload, raw, *scratch).ok())) {
        return false;
      }
    }
    gap_count += was_proved && !is_proved ? 1 : 0;
    was_proved = is_proved;
    // Two spans are known by the short block. Any number of spans allows other
    // sizes in two gaps, which move the text between them.
    if (!is_proved && (size_bytes != block_size_bytes ||
                       (expected.span_count == 0 && gap_count > 1))) {
      return false;
    }
  }
  return true;
}

absl::StatusOr<ManifestSegment> SegmentReader::Describe(
    const ReadableFile& file, const SegmentHeader& header) {
  SegmentReader segment;
  segment.file_ = file.path;
  segment.fd_ = file.fd.get();
  segment.header_ = header;
  if (file.size_bytes() < kSegmentHeaderSizeBytes + kTrailerSizeBytes) {
    return absl::DataLossError(
        absl::StrCat(file.path, ": is ", file.size_bytes(),
                     " bytes long, which is too short for a segment"));
  }
  QUIRE_RETURN_IF_ERROR(
      InFile(file.path, segment.ReadFooter(file.size_bytes(),
                                           /*restores_magic=*/true)));
  const SegmentFooter& footer = segment.footer_;
  ManifestSegment found;
  found.number = header.number;
  found.file_size_bytes = file.size_bytes();
  found.block_count = footer.block_count;
  found.document_count = footer.document_count;
  found.size_bytes = footer.size_bytes;
  found.id_size_bytes = footer.id_size_bytes;
  found.footer_checksum = footer.checksum;
  found.stored_text_size_bytes = footer.size_bytes;
  found.run_count = footer.size_bytes == 0 ? 0 : 1;
  found.derived_id_count = footer.derived_id_count;
  for (const SectionEntry& entry : footer.sections) {
    found.sections.push_back({.type = entry.type,
                              .size_bytes = entry.size_bytes,
                              .stored_size_bytes = entry.stored_size_bytes});
  }
  if (const SectionEntry* const entry = footer.Find(SectionType::kLayout)) {
    const auto section = segment.ReadSection(*entry, nullptr);
    QUIRE_RETURN_IF_ERROR(InFile(file.path, section.status()));
    ByteView bytes = AsBytes(*section);
    const auto size_bytes = TakeVarint(bytes);
    QUIRE_RETURN_IF_ERROR(InFile(file.path, size_bytes.status()));
    const auto count = TakeVarint(bytes);
    QUIRE_RETURN_IF_ERROR(InFile(file.path, count.status()));
    if (*size_bytes == 0 || *size_bytes > footer.size_bytes || *count < 2 ||
        *count > section->size()) {
      return InFile(file.path,
                    absl::DataLossError(absl::StrCat(
                        "layout: ", *count, " runs in ", *size_bytes,
                        " bytes of stored text of ", footer.size_bytes)));
    }
    found.stored_text_size_bytes = *size_bytes;
    found.run_count = *count;
  }
  // 0 if it is unknown: OpenDamaged() then decides by the blocks.
  found.span_count = footer.block_count == 1 ? 1 : 0;
  if (const SectionEntry* const entry = footer.Find(SectionType::kBlockSpans)) {
    const auto section = segment.ReadSection(*entry, nullptr);
    if (section.ok() && footer.block_count > 1) {
      found.span_count = CountSpans(AsBytes(*section), found);
    }
  }
  return found;
}

absl::Status SegmentReader::RecoverFooter(const ManifestSegment& expected,
                                          uint64_t found_size_bytes,
                                          std::vector<absl::Status>& damages) {
  uint64_t end = kSegmentHeaderSizeBytes + kTrailerSizeBytes +
                 expected.sections.size() * kSectionEntrySizeBytes;
  for (const ManifestSection& section : expected.sections) {
    end += section.stored_size_bytes;
  }
  constexpr uint64_t kFrameSizeBytesMin = kFrameOverheadSizeBytes + 1;
  if (end > expected.file_size_bytes ||
      (expected.file_size_bytes - end) / kFrameSizeBytesMin <
          expected.block_count) {
    return absl::DataLossError(
        "the sections that the manifest describes do not fit the file");
  }
  footer_ = SegmentFooter();
  footer_.block_count = expected.block_count;
  footer_.document_count = expected.document_count;
  footer_.size_bytes = expected.size_bytes;
  footer_.id_size_bytes = expected.id_size_bytes;
  footer_.blocks_end = kSegmentHeaderSizeBytes + expected.file_size_bytes - end;
  footer_.derived_id_count = expected.derived_id_count;
  std::vector<uint8_t> tail(expected.sections.size() * kSectionEntrySizeBytes +
                            kTrailerSizeBytes);
  ReadOrZero(fd_, expected.file_size_bytes - tail.size(), tail);
  FieldReader table{ByteView(tail)};
  std::vector<SectionEntry> stated;
  uint64_t offset = footer_.blocks_end;
  for (const ManifestSection& section : expected.sections) {
    SectionEntry entry = {.type = section.type,
                          .offset = offset,
                          .stored_size_bytes = section.stored_size_bytes,
                          .size_bytes = section.size_bytes};
    offset += section.stored_size_bytes;
    table.Skip(sizeof(uint32_t));
    const auto method = table.Integer<uint32_t>();
    table.Skip(3 * sizeof(uint64_t));
    const auto checksum = table.Integer<uint64_t>();
    if (offset > found_size_bytes) {
      damages.push_back(absl::DataLossError(absl::StrCat(
          SectionName(section.type), " is missing: the file is cut")));
      continue;
    }
    std::string stored(section.stored_size_bytes, '\0');
    ReadOrZero(fd_, entry.offset, AsMutableBytes(stored));
    entry.method = GuessMethod(AsBytes(stored), entry.size_bytes);
    entry.checksum = Checksum64(AsBytes(stored));
    footer_.sections.push_back(entry);
    entry.method = ParseCompressionMethod(method, "").value_or(entry.method);
    entry.checksum = checksum;
    stated.push_back(entry);
  }
  // After the five counts and offsets of the trailer.
  table.Skip(5 * sizeof(uint64_t));
  footer_.block_chain = table.Integer<uint64_t>();
  if (ProveTable(stated, expected, footer_)) {
    return absl::OkStatus();
  }
  for (size_t i = 0; i < stated.size(); ++i) {
    if (stated[i].checksum != footer_.sections[i].checksum) {
      unproved_section_count_ += IsAboutDocuments(stated[i].type) ? 1 : 0;
      damages.push_back(absl::DataLossError(
          absl::StrCat(SectionName(stated[i].type),
                       " has no checksum that proves it: the section or its "
                       "checksum is damaged; it is used if it is consistent")));
    }
  }
  return absl::OkStatus();
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
  for (const BlockPart& part : parts) {
    QUIRE_RETURN_IF_ERROR(InBlock(
        block_index, codec.DecodeRange(*payload, raw_size, part.offset_in_block,
                                       part.text, scratch)));
  }
  return absl::OkStatus();
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
    if ((section.type & kSectionIgnorableBit) != 0) {
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
