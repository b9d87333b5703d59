// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/format/segment_format.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"
#include "server/archive/format/block_frame.h"

namespace quire {
namespace {

absl::Status CheckReserved(uint32_t reserved, absl::string_view what) {
  if (reserved != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("reserved field of the ", what, " is ", reserved,
                     ", which this program does not know: use a newer one"));
  }
  return absl::OkStatus();
}

absl::StatusOr<SectionEntry> ParseSectionEntry(ByteView bytes) {
  FieldReader reader(bytes);
  SectionEntry entry;
  entry.type = reader.Integer<uint32_t>();
  const uint32_t method = reader.Integer<uint32_t>();
  entry.offset = reader.Integer<uint64_t>();
  entry.stored_size_bytes = reader.Integer<uint64_t>();
  entry.size_bytes = reader.Integer<uint64_t>();
  entry.checksum = reader.Integer<uint64_t>();
  const std::string name = absl::StrCat("section of type ", entry.type);
  if (!IsKnownSectionType(entry.type)) {
    if ((entry.type & kSectionIgnorableBit) != 0) {
      // Only its offset and stored size matter to this program.
      return entry;
    }
    return absl::FailedPreconditionError(absl::StrCat(
        name, " is not known to this program and cannot be ignored: use a ",
        "newer one"));
  }
  QUIRE_ASSIGN_OR_RETURN(entry.method, ParseCompressionMethod(method, name));
  if (entry.size_bytes > kSectionSizeBytesMax ||
      !IsPlausibleExpansion(entry.method, entry.stored_size_bytes,
                            entry.size_bytes)) {
    return Damaged(absl::StrCat(name, " claims ", entry.size_bytes,
                                " bytes out of ", entry.stored_size_bytes));
  }
  return entry;
}

// Sections tile the file between frames and table, each type at most once and
// in ascending order.
absl::Status CheckSectionPlaces(const SegmentFooter& footer,
                                uint64_t table_offset) {
  uint64_t expected_offset = footer.blocks_end;
  uint32_t previous_type = 0;
  for (const SectionEntry& entry : footer.sections) {
    if (entry.offset != expected_offset ||
        entry.stored_size_bytes > table_offset - expected_offset) {
      return Damaged(absl::StrCat("section of type ", entry.type,
                                  " lies at byte ", entry.offset, ", expected ",
                                  expected_offset));
    }
    if (entry.type <= previous_type) {
      return Damaged(absl::StrCat("section of type ", entry.type,
                                  " comes after one of type ", previous_type));
    }
    previous_type = entry.type;
    expected_offset += entry.stored_size_bytes;
  }
  if (expected_offset != table_offset) {
    return Damaged(absl::StrCat("sections end at byte ", expected_offset,
                                ", the section table begins at ",
                                table_offset));
  }
  return absl::OkStatus();
}

// Checks the counts against each other and against the sections that carry
// them, so that they are safe to allocate by.
absl::Status CheckCounts(const SegmentFooter& footer) {
  const uint64_t block_count = footer.block_count;
  if (footer.size_bytes > kLogicalSizeBytesMax ||
      block_count > footer.size_bytes ||
      (block_count == 0) != (footer.size_bytes == 0) ||
      block_count > kSegmentBlockCountMax) {
    return Damaged(absl::StrCat(block_count, " blocks for ", footer.size_bytes,
                                " bytes of text"));
  }
  const uint64_t frames_size_bytes =
      footer.blocks_end - kSegmentHeaderSizeBytes;
  if (frames_size_bytes / (kFrameOverheadSizeBytes + 1) < block_count ||
      (block_count == 0 && frames_size_bytes != 0)) {
    return Damaged(
        absl::StrCat(block_count, " blocks in ", frames_size_bytes, " bytes"));
  }
  const SectionEntry* ids = footer.Find(SectionType::kDocumentIds);
  const SectionEntry* sizes = footer.Find(SectionType::kDocumentSizes);
  const bool has_runs = footer.Find(SectionType::kIdRuns) != nullptr;
  if (has_runs != (footer.derived_id_count != 0) ||
      footer.derived_id_count > footer.document_count ||
      (has_runs &&
       (sizes == nullptr || sizes->size_bytes <= footer.document_count))) {
    return Damaged(absl::StrCat(
        footer.derived_id_count, " of ", footer.document_count,
        " ids are computed, ", has_runs ? "with" : "without", " id runs and ",
        sizes == nullptr ? 0 : sizes->size_bytes, " bytes of document sizes"));
  }
  const uint64_t stored_id_count =
      footer.document_count - footer.derived_id_count;
  if (footer.document_count > kSegmentDocumentCountMax ||
      stored_id_count > (ids == nullptr ? 0 : ids->size_bytes / 2)) {
    return Damaged(absl::StrCat(stored_id_count, " documents with ",
                                ids == nullptr ? 0 : ids->size_bytes,
                                " bytes of ids"));
  }
  if (footer.id_size_bytes >
      stored_id_count * uint64_t{kDocumentIdSizeBytesMax}) {
    return Damaged(absl::StrCat(footer.document_count, " documents with ",
                                footer.id_size_bytes, " bytes in their ids"));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsKnownSectionType(uint32_t type) {
  return (type >= static_cast<uint32_t>(SectionType::kBlockSizes) &&
          type <= static_cast<uint32_t>(SectionType::kBlockSpans)) ||
         type == static_cast<uint32_t>(SectionType::kIdRuns) ||
         (type >= static_cast<uint32_t>(SectionType::kTextChecksums) &&
          type <= static_cast<uint32_t>(SectionType::kContainerData));
}

absl::string_view SectionName(uint32_t type) {
  switch (static_cast<SectionType>(type)) {
    case SectionType::kBlockSizes:
      return "block index";
    case SectionType::kDocumentSizes:
      return "document sizes";
    case SectionType::kDocumentIds:
      return "document ids";
    case SectionType::kDocumentOrder:
      return "document order";
    case SectionType::kCaptureTimes:
      return "capture times";
    case SectionType::kMediaTypes:
      return "media types";
    case SectionType::kRecordTypes:
      return "record types";
    case SectionType::kLayout:
      return "layout";
    case SectionType::kBlockSpans:
      return "block spans";
    case SectionType::kIdRuns:
      return "id runs";
    case SectionType::kTextChecksums:
      return "text checksums";
    case SectionType::kContainerDirectory:
      return "container directory";
    case SectionType::kContainerData:
      return "container data";
  }
  return "unknown section";
}

std::string EncodeSegmentHeader(const SegmentHeader& header) {
  FieldWriter writer;
  writer.Bytes(kSegmentMagic);
  writer.Integer(kFormatVersion);
  writer.Integer(header.number);
  writer.Integer(header.block_size_bytes);
  writer.Integer(header.codec_id);
  writer.Integer(header.partition_size_bytes);
  writer.Integer(uint32_t{0});
  writer.Integer(header.dictionary_hash);
  writer.Integer(writer.Checksum());
  return writer.Take();
}

absl::StatusOr<SegmentHeader> ParseSegmentHeader(ByteView bytes) {
  QUIRE_RETURN_IF_ERROR(
      CheckMagicAndVersion(bytes, kSegmentMagic, "segment header"));
  FieldReader reader(bytes);
  reader.Skip(kSegmentMagic.size() + sizeof(uint32_t));
  SegmentHeader header;
  header.number = reader.Integer<uint32_t>();
  header.block_size_bytes = reader.Integer<uint32_t>();
  header.codec_id = reader.Integer<uint32_t>();
  header.partition_size_bytes = reader.Integer<uint32_t>();
  const uint32_t reserved = reader.Integer<uint32_t>();
  header.dictionary_hash = reader.Integer<uint64_t>();
  const uint64_t expected = reader.Integer<uint64_t>();
  const uint64_t found =
      Checksum64(bytes.first(kSegmentHeaderSizeBytes - sizeof(uint64_t)));
  if (found != expected) {
    return ChecksumMismatch("segment header checksum", found, expected);
  }
  QUIRE_RETURN_IF_ERROR(CheckReserved(reserved, "segment header"));
  return header;
}

const SectionEntry* SegmentFooter::Find(SectionType type) const {
  for (const SectionEntry& entry : sections) {
    if (entry.type == static_cast<uint32_t>(type)) {
      return &entry;
    }
  }
  return nullptr;
}

std::string EncodeSegmentFooter(SegmentFooter& footer,
                                uint32_t segment_number) {
  FieldWriter writer;
  for (const SectionEntry& entry : footer.sections) {
    writer.Integer(entry.type);
    writer.Integer(static_cast<uint32_t>(entry.method));
    writer.Integer(entry.offset);
    writer.Integer(entry.stored_size_bytes);
    writer.Integer(entry.size_bytes);
    writer.Integer(entry.checksum);
  }
  writer.Integer(footer.block_count);
  writer.Integer(footer.document_count);
  writer.Integer(footer.size_bytes);
  writer.Integer(footer.id_size_bytes);
  writer.Integer(footer.blocks_end);
  writer.Integer(footer.block_chain);
  writer.Integer(static_cast<uint32_t>(footer.sections.size()));
  writer.Integer(footer.derived_id_count);
  footer.checksum = writer.Checksum(segment_number);
  writer.Integer(footer.checksum);
  writer.Bytes(kSegmentEndMagic);
  return writer.Take();
}

void RestoreEndMagic(MutableByteView footer) {
  std::ranges::copy(kSegmentEndMagic,
                    footer.last(kSegmentEndMagic.size()).begin());
}

absl::StatusOr<size_t> SegmentFooterSizeBytes(ByteView trailer) {
  if (!std::ranges::equal(trailer.last(kSegmentEndMagic.size()),
                          kSegmentEndMagic)) {
    return Damaged("the file does not end as a segment does");
  }
  const uint32_t section_count =
      LoadLittleEndian<uint32_t>(trailer.data() + 48);
  if (section_count > kSectionCountMax) {
    return Damaged(absl::StrCat("section count is ", section_count,
                                ", expected at most ", kSectionCountMax));
  }
  return section_count * kSectionEntrySizeBytes + kTrailerSizeBytes;
}

absl::StatusOr<SegmentFooter> ParseSegmentFooter(ByteView bytes,
                                                 uint64_t file_size_bytes,
                                                 uint32_t segment_number) {
  FieldReader reader(bytes.last(kTrailerSizeBytes));
  SegmentFooter footer;
  footer.block_count = reader.Integer<uint64_t>();
  footer.document_count = reader.Integer<uint64_t>();
  footer.size_bytes = reader.Integer<uint64_t>();
  footer.id_size_bytes = reader.Integer<uint64_t>();
  footer.blocks_end = reader.Integer<uint64_t>();
  footer.block_chain = reader.Integer<uint64_t>();
  const uint32_t section_count = reader.Integer<uint32_t>();
  footer.derived_id_count = reader.Integer<uint32_t>();
  footer.checksum = reader.Integer<uint64_t>();
  const uint64_t found = Checksum64(
      bytes.first(bytes.size() - kSegmentEndMagic.size() - sizeof(uint64_t)),
      segment_number);
  if (found != footer.checksum) {
    return ChecksumMismatch("footer checksum", found, footer.checksum);
  }
  const uint64_t table_offset = file_size_bytes - bytes.size();
  if (footer.blocks_end < kSegmentHeaderSizeBytes ||
      footer.blocks_end > table_offset) {
    return Damaged(absl::StrCat("blocks end at byte ", footer.blocks_end,
                                " of ", file_size_bytes));
  }
  for (size_t i = 0; i < section_count; ++i) {
    QUIRE_ASSIGN_OR_RETURN(SectionEntry entry, ParseSectionEntry(bytes.subspan(
                                                   i * kSectionEntrySizeBytes,
                                                   kSectionEntrySizeBytes)));
    footer.sections.push_back(entry);
  }
  QUIRE_RETURN_IF_ERROR(CheckSectionPlaces(footer, table_offset));
  QUIRE_RETURN_IF_ERROR(CheckCounts(footer));
  return footer;
}

}  // namespace quire
