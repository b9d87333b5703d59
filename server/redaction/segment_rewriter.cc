// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/redaction/segment_rewriter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "server/archive/files/file_io.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/segment_reader.h"

namespace quire {
namespace {

uint64_t Less(uint64_t from, uint64_t count) {
  return from - std::min(from, count);
}

void Exchange(const InflatedMembers& before, const InflatedMembers& after,
              InflatedMembers& members) {
  members.count = Less(members.count, before.count) + after.count;
  members.size_bytes =
      Less(members.size_bytes, before.size_bytes) + after.size_bytes;
  members.stored_size_bytes =
      Less(members.stored_size_bytes, before.stored_size_bytes) +
      after.stored_size_bytes;
}

// Zeros the parts of a text that begins at `begin`.
void ZeroIn(std::span<const TextInterval> intervals, uint64_t begin,
            MutableByteView text) {
  const uint64_t end = begin + text.size();
  for (auto interval =
           std::ranges::upper_bound(intervals, begin, {}, &TextInterval::end);
       interval != intervals.end() && interval->begin < end; ++interval) {
    const uint64_t from = std::max(interval->begin, begin);
    const uint64_t to = std::min(interval->end, end);
    std::ranges::fill(text.subspan(from - begin, to - from), uint8_t{0});
  }
}

}  // namespace

SegmentRewriter::SegmentRewriter(const SegmentRewriterOptions& options,
                                 const ArchiveChange& change,
                                 Manifest& manifest)
    : options_(options),
      change_(change),
      manifest_(manifest),
      block_(options.archive),
      members_(manifest.members) {}

absl::Status SegmentRewriter::Rewrite(uint32_t segment_index,
                                      const SegmentRedaction& plan,
                                      std::span<const uint64_t> removed) {
  if (manifest_.next_segment_number > kSegmentNumberMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("all segment numbers up to ", kSegmentNumberMax,
                     " are used: recompress the archive"));
  }
  QUIRE_ASSIGN_OR_RETURN(
      SegmentWriter writer,
      SegmentWriter::Create(
          change_.fd(), change_.name(),
          {.number = manifest_.next_segment_number,
           .block_size_bytes = manifest_.block_size_bytes,
           .codec_id = static_cast<uint32_t>(manifest_.codec.id),
           .partition_size_bytes = manifest_.codec.partition_size_bytes,
           .dictionary_hash =
               manifest_.dictionary ? manifest_.dictionary->hash : 0}));
  writer_.emplace(std::move(writer));
  QUIRE_RETURN_IF_ERROR(WriteBlocks(segment_index, plan));
  QUIRE_RETURN_IF_ERROR(WriteDocuments(segment_index, plan, removed));
  absl::StatusOr<ManifestSegment> segment = writer_->Finish();
  QUIRE_RETURN_IF_ERROR(segment.status());
  segment->codec_level = manifest_.segments[segment_index].codec_level;
  manifest_.block_size_bytes_max =
      std::max(manifest_.block_size_bytes_max, writer_->block_size_bytes_max());
  manifest_.slices_per_mib_max =
      std::max(manifest_.slices_per_mib_max, writer_->slices_per_mib_max());
  manifest_.next_segment_number = segment->number + 1;
  manifest_.segments[segment_index] = *std::move(segment);
  writer_.reset();
  return absl::OkStatus();
}

absl::Status SegmentRewriter::WriteBlocks(uint32_t segment_index,
                                          const SegmentRedaction& plan) {
  const Archive& archive = options_.archive;
  QUIRE_ASSIGN_OR_RETURN(
      const auto encoder,
      ParallelEncoder::Create(options_.codec, options_.threads,
                              archive.info().block_size_bytes_max,
                              [this](ByteView raw, const Payload& payload) {
                                return Append(raw, payload);
                              }));
  uint64_t begin = 0;
  for (uint64_t i = 0; i < archive.SegmentBlockCount(segment_index); ++i) {
    const BlockAddress block{segment_index, i};
    QUIRE_RETURN_IF_ERROR(WriteBlock(block, begin, plan, *encoder));
    begin += archive.BlockSizeBytes(block);
    QUIRE_RETURN_IF_ERROR(options_.on_read(archive.BlockSizeBytes(block)));
  }
  if (plan.end_zeros_size_bytes > 0) {
    QUIRE_RETURN_IF_ERROR(
        Encode(std::vector<uint8_t>(plan.end_zeros_size_bytes, 0), *encoder));
  }
  QUIRE_RETURN_IF_ERROR(encoder->Drain());
  blocks_.reencoded_count += encoder->reencoded_count();
  return absl::OkStatus();
}

absl::Status SegmentRewriter::WriteBlock(BlockAddress block, uint64_t begin,
                                         const SegmentRedaction& plan,
                                         ParallelEncoder& encoder) {
  const uint32_t size_bytes = options_.archive.BlockSizeBytes(block);
  QUIRE_RETURN_IF_ERROR(block_.Read(block));
  const Payload& payload = block_.payload();
  if (manifest_.codec.id == CodecId::kAuto) {
    QUIRE_RETURN_IF_ERROR(members_.Remove(
        MemberOf(payload, manifest_.codec.partition_size_bytes != 0),
        size_bytes, payload.bytes.size()));
  }
  if (payload.has_recipe) {
    inflated_before_.Add(payload.bytes);
  }
  if (plan.Changes(begin, begin + size_bytes)) {
    ++blocks_.changed_count;
    QUIRE_ASSIGN_OR_RETURN(const ByteView raw, block_.Raw());
    return Encode(plan.Apply(begin, raw), encoder);
  }
  if (options_.is_dictionary_new) {
    QUIRE_ASSIGN_OR_RETURN(const ByteView raw, block_.Raw());
    QUIRE_ASSIGN_OR_RETURN(const MutableByteView text, encoder.Acquire());
    std::ranges::copy(raw, text.begin());
    encoder.SubmitEncoded(raw.size(), payload);
    return absl::OkStatus();
  }
  QUIRE_RETURN_IF_ERROR(encoder.Drain());
  buffer_.resize(size_bytes);
  return Append(payload.is_raw ? payload.bytes : ByteView(buffer_), payload);
}

absl::Status SegmentRewriter::Encode(ByteView text, ParallelEncoder& encoder) {
  const size_t block_size_max = options_.archive.info().block_size_bytes_max;
  const size_t count = (text.size() + block_size_max - 1) / block_size_max;
  for (size_t i = 0; i < count; ++i) {
    const size_t size = text.size() / (count - i);
    QUIRE_ASSIGN_OR_RETURN(const MutableByteView raw, encoder.Acquire());
    std::ranges::copy(text.first(size), raw.begin());
    encoder.Submit(size);
    text = text.subspan(size);
  }
  return absl::OkStatus();
}

absl::Status SegmentRewriter::Append(ByteView raw, const Payload& payload) {
  QUIRE_RETURN_IF_ERROR(writer_->AppendBlock(raw, payload));
  if (manifest_.codec.id == CodecId::kAuto) {
    members_.Add(MemberOf(payload, manifest_.codec.partition_size_bytes != 0),
                 raw.size(), payload.bytes.size());
  }
  if (payload.has_recipe) {
    inflated_after_.Add(payload.bytes);
  }
  return absl::OkStatus();
}

absl::Status SegmentRewriter::WriteDocuments(
    uint32_t segment_index, const SegmentRedaction& plan,
    std::span<const uint64_t> removed) {
  const Archive& archive = options_.archive;
  uint64_t ordinal = 0;
  for (uint32_t i = 0; i < segment_index; ++i) {
    ordinal += manifest_.segments[i].document_count;
  }
  const uint64_t end =
      ordinal + manifest_.segments[segment_index].document_count;
  DocumentIndexBuilder documents;
  std::vector<TextInterval> ranges;
  auto next = removed.begin();
  for (; ordinal < end; ++ordinal) {
    QUIRE_ASSIGN_OR_RETURN(const Document document,
                           archive.GetDocument({ordinal}));
    NewDocument written = {.size_bytes = document.range.size_bytes,
                           .record_type = kWithdrawnRecordType};
    if (next != removed.end() && *next == ordinal) {
      ++next;
      const uint64_t begin =
          document.range.offset.value - archive.SegmentStart(segment_index);
      ranges.push_back({begin, begin + document.range.size_bytes});
    } else {
      written.id = document.id;
      written.capture_time_ms = document.capture_time_ms;
      written.record_type = document.record_type;
      written.media_type = document.media_type;
    }
    QUIRE_RETURN_IF_ERROR(plan.runs.empty() ? writer_->AddDocument(written)
                                            : documents.Add(written));
  }
  if (plan.runs.empty()) {
    return absl::OkStatus();
  }
  QUIRE_ASSIGN_OR_RETURN(std::vector<TextChecksum> checksums,
                         ChecksumText(segment_index, ranges));
  return writer_->SetLayout(
      {.stored_text_size_bytes = plan.stored_text_size_bytes,
       .runs = plan.runs,
       .checksums = std::move(checksums)},
      std::move(documents));
}

absl::StatusOr<std::vector<TextChecksum>> SegmentRewriter::ChecksumText(
    uint32_t segment_index, std::span<const TextInterval> removed) {
  const Archive& archive = options_.archive;
  const std::string name =
      SegmentFileName(change_.manifest().segments[segment_index].number);
  SegmentFile file;
  QUIRE_ASSIGN_OR_RETURN(
      file.file, OpenReadableFile(change_.archive_fd(), name,
                                  absl::StrCat(change_.path(), "/", name)));
  QUIRE_ASSIGN_OR_RETURN(
      const SegmentReader reader,
      SegmentReader::Open(file, change_.manifest(),
                          change_.manifest().segments[segment_index], nullptr));
  QUIRE_ASSIGN_OR_RETURN(std::vector<TextChecksum> checksums,
                         reader.ReadTextChecksums());
  uint64_t begin = 0;
  for (TextChecksum& piece : checksums) {
    const uint64_t end = begin + piece.size_bytes;
    const auto first =
        std::ranges::upper_bound(removed, begin, {}, &TextInterval::end);
    if (first != removed.end() && first->begin < end) {
      QUIRE_ASSIGN_OR_RETURN(
          const std::vector<BlockSlice> slices,
          archive.Plan({{archive.SegmentStart(segment_index) + begin},
                        piece.size_bytes}));
      Checksummer64 checksum;
      uint64_t at = begin;
      for (const BlockSlice& slice : slices) {
        QUIRE_RETURN_IF_ERROR(block_.Read(slice.block));
        QUIRE_ASSIGN_OR_RETURN(const ByteView raw, block_.Raw());
        const ByteView part =
            raw.subspan(slice.offset_in_block, slice.size_bytes);
        buffer_.assign(part.begin(), part.end());
        ZeroIn(removed, at, buffer_);
        checksum.Add(buffer_);
        at += slice.size_bytes;
      }
      piece.checksum = checksum.Get();
    }
    begin = end;
  }
  return checksums;
}

RewrittenBlocks SegmentRewriter::Finish() {
  manifest_.members = members_.members();
  for (FoundMembers& found : manifest_.found_members) {
    Exchange(inflated_before_.of(found.container),
             inflated_after_.of(found.container), found.inflated);
  }
  return blocks_;
}

}  // namespace quire
