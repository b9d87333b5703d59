// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/format/manifest_check.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "codecs/base/status_macros.h"
#include "codecs/block_codec.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/segment_format.h"

namespace quire {
namespace {

absl::Status CheckCodec(const Manifest& manifest) {
  const CodecInfo* codec = FindCodec(manifest.codec.id);
  if (codec == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("codec ", static_cast<uint32_t>(manifest.codec.id),
                     " is not known to this program: use a newer one"));
  }
  const auto check_level = [codec](int level) {
    return level >= codec->level_min && level <= codec->level_max
               ? absl::OkStatus()
               : absl::FailedPreconditionError(absl::StrCat(
                     "level ", level, " of codec ", codec->name,
                     " is not known to this program: use a newer one"));
  };
  QUIRE_RETURN_IF_ERROR(check_level(manifest.codec.level));
  for (const ManifestSegment& segment : manifest.segments) {
    QUIRE_RETURN_IF_ERROR(check_level(segment.codec_level));
  }
  if (codec->needs_dictionary != manifest.dictionary.has_value()) {
    return Damaged(absl::StrCat(
        "codec ", codec->name,
        codec->needs_dictionary ? " without a" : " with a", " dictionary"));
  }
  if (codec->needs_symbol_table && !manifest.symbol_table.has_value()) {
    return Damaged(absl::StrCat("codec ", codec->name, " without a table"));
  }
  return absl::OkStatus();
}

absl::Status CheckPartitionSize(const Manifest& manifest) {
  const uint32_t size_bytes = manifest.codec.partition_size_bytes;
  const CodecInfo& codec = *FindCodec(manifest.codec.id);
  if (size_bytes != 0 &&
      !(codec.takes_partitions && IsPartitionSize(size_bytes))) {
    return Damaged(absl::StrCat("partition size is ", size_bytes,
                                " with codec ", codec.name, " and blocks of ",
                                manifest.block_size_bytes));
  }
  return absl::OkStatus();
}

const ManifestSection* FindSection(const ManifestSegment& segment,
                                   SectionType type) {
  const auto section = std::ranges::find(
      segment.sections, static_cast<uint32_t>(type), &ManifestSection::type);
  return section == segment.sections.end() ? nullptr : &*section;
}

// The numbers of runs and spans determine memory: their sections must be large
// enough for them.
absl::Status CheckBlocksAndRuns(const ManifestSegment& segment) {
  const ManifestSection* const layout =
      FindSection(segment, SectionType::kLayout);
  const uint64_t run_count_min =
      segment.size_bytes == 0 ? 0 : (layout == nullptr ? 1 : 2);
  const uint64_t run_count_max =
      layout == nullptr ? run_count_min : layout->size_bytes;
  if (segment.run_count < run_count_min || segment.run_count > run_count_max) {
    return Damaged(absl::StrCat("a layout of ", segment.run_count,
                                " runs, expected ", run_count_min, " to ",
                                run_count_max));
  }
  if ((segment.stored_text_size_bytes == 0) != (segment.size_bytes == 0) ||
      (layout == nullptr
           ? segment.stored_text_size_bytes != segment.size_bytes
           : segment.stored_text_size_bytes > segment.size_bytes)) {
    return Damaged(absl::StrCat(segment.stored_text_size_bytes,
                                " bytes of stored text for ",
                                segment.size_bytes, " of text"));
  }
  const ManifestSection* const spans =
      FindSection(segment, SectionType::kBlockSpans);
  if (segment.block_count > segment.stored_text_size_bytes ||
      (segment.block_count == 0) != (segment.stored_text_size_bytes == 0)) {
    return Damaged(absl::StrCat(segment.block_count, " blocks for ",
                                segment.stored_text_size_bytes,
                                " bytes of stored text"));
  }
  if ((segment.span_count == 0) != (segment.block_count == 0) ||
      segment.span_count > segment.block_count ||
      segment.span_count > (spans == nullptr ? 0 : spans->size_bytes)) {
    return Damaged(
        absl::StrCat(segment.span_count, " block spans for ",
                     segment.block_count, " blocks, in a section of ",
                     spans == nullptr ? 0 : spans->size_bytes, " bytes"));
  }
  return absl::OkStatus();
}

absl::Status CheckSegmentNumbers(const Manifest& manifest) {
  absl::flat_hash_set<uint32_t> numbers;
  for (const ManifestSegment& segment : manifest.segments) {
    if (segment.number > kSegmentNumberMax ||
        segment.number >= manifest.next_segment_number) {
      return Damaged(absl::StrCat(
          "segment number is ", segment.number, ", expected less than ",
          manifest.next_segment_number, ", the next number"));
    }
    if (!numbers.insert(segment.number).second) {
      return Damaged(
          absl::StrCat("segment ", segment.number, " is named twice"));
    }
  }
  if (manifest.next_segment_number > kSegmentNumberMax + 1) {
    return Damaged(absl::StrCat("next segment number is ",
                                manifest.next_segment_number,
                                ", expected at most ", kSegmentNumberMax + 1));
  }
  return absl::OkStatus();
}

// States precede each other and the current one. `what` names the list.
absl::Status CheckStates(const Manifest& manifest,
                         const std::vector<ManifestState>& states,
                         absl::string_view what) {
  ManifestState now;
  for (const ManifestSegment& segment : manifest.segments) {
    now.size_bytes += segment.size_bytes;
    now.document_count += segment.document_count;
  }
  ManifestState before;
  for (size_t i = 0; i < states.size(); ++i) {
    const ManifestState& state = states[i];
    if (state.size_bytes < before.size_bytes ||
        state.document_count < before.document_count ||
        state.size_bytes > now.size_bytes ||
        state.document_count > now.document_count) {
      return Damaged(absl::StrCat(
          "state ", i, " of the ", what, " has ", state.size_bytes,
          " bytes and ", state.document_count, " documents, after ",
          before.size_bytes, " and ", before.document_count, " and before ",
          now.size_bytes, " and ", now.document_count));
    }
    before = state;
  }
  return absl::OkStatus();
}

absl::Status CheckSegments(const Manifest& manifest) {
  if (manifest.segments.size() > kSegmentCountMax) {
    return Damaged(absl::StrCat(manifest.segments.size(),
                                " segments, expected at most ",
                                kSegmentCountMax));
  }
  uint64_t size_bytes = 0;
  uint64_t file_size_bytes = 0;
  for (const ManifestSegment& segment : manifest.segments) {
    const std::string name = absl::StrCat("segment ", segment.number);
    // With these checks, no sum over 65536 segments overflows.
    if (segment.size_bytes > kLogicalSizeBytesMax - size_bytes ||
        segment.file_size_bytes > kLogicalSizeBytesMax - file_size_bytes ||
        segment.block_count > kSegmentBlockCountMax ||
        segment.document_count > kSegmentDocumentCountMax ||
        segment.derived_id_count > segment.document_count ||
        segment.id_size_bytes >
            (segment.document_count - segment.derived_id_count) *
                kDocumentIdSizeBytesMax) {
      return Damaged(absl::StrCat(name, " has impossible counts or sizes"));
    }
    size_bytes += segment.size_bytes;
    file_size_bytes += segment.file_size_bytes;
    if (segment.sections.size() > kSectionCountMax) {
      return Damaged(
          absl::StrCat(name, " has ", segment.sections.size(), " sections"));
    }
    for (const ManifestSection& section : segment.sections) {
      if (!IsKnownSectionType(section.type)) {
        continue;
      }
      if (section.stored_size_bytes > segment.file_size_bytes ||
          section.size_bytes > kSectionSizeBytesMax ||
          section.size_bytes / kExpansionMax > section.stored_size_bytes) {
        return Damaged(absl::StrCat(name, " has a section that claims ",
                                    section.size_bytes, " bytes out of ",
                                    section.stored_size_bytes));
      }
    }
    QUIRE_RETURN_IF_ERROR(InFile(name, CheckBlocksAndRuns(segment)));
  }
  return absl::OkStatus();
}

// REQUIRES: CheckSegments() returned OK.
absl::Status CheckMembers(const Manifest& manifest) {
  if (manifest.codec.id != CodecId::kAuto) {
    return manifest.members.empty()
               ? absl::OkStatus()
               : Damaged(absl::StrCat("members with codec ",
                                      FindCodec(manifest.codec.id)->name,
                                      ", expected none"));
  }
  MemberBlocks all;
  for (const ManifestSegment& segment : manifest.segments) {
    all.block_count += segment.block_count;
    all.size_bytes += segment.stored_text_size_bytes;
    all.stored_size_bytes += segment.file_size_bytes;
  }
  MemberBlocks sum;
  for (const MemberBlocks& member : manifest.members) {
    // Compared with the rest, so that no sum overflows.
    if (member.codec <= sum.codec || member.block_count == 0 ||
        member.block_count > all.block_count - sum.block_count ||
        member.size_bytes > all.size_bytes - sum.size_bytes ||
        member.stored_size_bytes >
            all.stored_size_bytes - sum.stored_size_bytes) {
      return Damaged(absl::StrCat("member ",
                                  static_cast<uint32_t>(member.codec),
                                  " has impossible counts or sizes"));
    }
    sum.codec = member.codec;
    sum.block_count += member.block_count;
    sum.size_bytes += member.size_bytes;
    sum.stored_size_bytes += member.stored_size_bytes;
  }
  if (sum.block_count != all.block_count || sum.size_bytes != all.size_bytes) {
    return Damaged(absl::StrCat("members have ", sum.block_count, " blocks of ",
                                sum.size_bytes, " bytes, the segments ",
                                all.block_count, " of ", all.size_bytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckManifest(const Manifest& manifest) {
  QUIRE_RETURN_IF_ERROR(CheckCodec(manifest));
  if (!IsBlockSize(manifest.block_size_bytes)) {
    return Damaged(absl::StrCat("block size is ", manifest.block_size_bytes));
  }
  QUIRE_RETURN_IF_ERROR(CheckPartitionSize(manifest));
  if (manifest.block_size_bytes_max < manifest.block_size_bytes ||
      manifest.block_size_bytes_max > kBlockSizeBytesMax) {
    return Damaged(absl::StrCat(
        "the largest block size is ", manifest.block_size_bytes_max,
        ", expected ", manifest.block_size_bytes, " to ", kBlockSizeBytesMax));
  }
  if (manifest.slices_per_mib_max > kSlicesPerMibMax) {
    return Damaged(absl::StrCat(manifest.slices_per_mib_max,
                                " slices in 1 MiB of text, expected at most ",
                                kSlicesPerMibMax));
  }
  if (manifest.dictionary.has_value() &&
      (manifest.dictionary->size_bytes > kDictionaryTextSizeBytesMax ||
       manifest.dictionary->file_size_bytes > kLogicalSizeBytesMax)) {
    return Damaged(
        absl::StrCat("dictionary size is ", manifest.dictionary->size_bytes));
  }
  if (manifest.symbol_table.has_value() &&
      (manifest.symbol_table->size_bytes < kSymbolTableSizeBytesMin ||
       manifest.symbol_table->size_bytes > kSymbolTableSizeBytesMax)) {
    return Damaged(absl::StrCat("symbol table size is ",
                                manifest.symbol_table->size_bytes));
  }
  QUIRE_RETURN_IF_ERROR(CheckSegmentNumbers(manifest));
  QUIRE_RETURN_IF_ERROR(CheckSegments(manifest));
  QUIRE_RETURN_IF_ERROR(CheckStates(manifest, manifest.history, "history"));
  QUIRE_RETURN_IF_ERROR(
      CheckStates(manifest, manifest.redacted_states, "redacted states"));
  return CheckMembers(manifest);
}

}  // namespace quire
