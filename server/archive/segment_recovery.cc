// SPDX-License-Identifier: GPL-3.0-or-later
//
// The part of SegmentReader that opens damaged segments.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "server/archive/format/block_frame.h"
#include "server/archive/format/section_compression.h"
#include "server/archive/index/frame_search.h"
#include "server/archive/segment_reader.h"

namespace quire {
namespace {

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
  if (const absl::Status container = segment.ReadContainer(nullptr);
      !container.ok()) {
    damages.push_back(InFile(segment.file_, container));
  }
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
    footer = CheckFooter(expected);
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
    if (section.type == static_cast<uint32_t>(SectionType::kContainerData)) {
      // It has any size, and is not held in memory.
      entry.checksum =
          ReadChecksum(fd_, entry.offset, entry.stored_size_bytes, "",
                       [](int, uint64_t, uint64_t) { return absl::OkStatus(); })
              .value_or(0);
    } else {
      std::string stored(section.stored_size_bytes, '\0');
      ReadOrZero(fd_, entry.offset, AsMutableBytes(stored));
      entry.method = GuessMethod(AsBytes(stored), entry.size_bytes);
      entry.checksum = Checksum64(AsBytes(stored));
    }
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

}  // namespace quire
