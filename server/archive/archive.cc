// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/archive.h"

#include <fcntl.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "server/archive/archive_parts.h"
#include "server/archive/deposited_files.h"
#include "server/archive/files/archive_directory.h"
#include "server/archive/files/dictionary_file.h"
#include "server/archive/files/file_io.h"
#include "server/archive/files/symbol_table_file.h"
#include "server/archive/format/archive_format.h"

namespace quire {

Archive::Archive(std::string path)
    : path_(std::move(path)),
      deposited_files_(std::make_unique<DepositedFiles>()) {}

Archive::~Archive() = default;

const std::string& Archive::SegmentPath(uint32_t segment_index) const {
  return segments_[segment_index].opened->file.file.path;
}

const CodecContext& Archive::context() const {
  return *codec_->context;
}

const PayloadCodec& Archive::codec() const {
  return *codec_->codec;
}

absl::Status Archive::CheckIndexes(const BeforeRead& before_read,
                                   std::vector<absl::Status>& damages) const {
  QUIRE_RETURN_IF_ERROR(CheckManifest(before_read, damages));
  for (const Segment& segment : segments_) {
    QUIRE_RETURN_IF_ERROR(segment.reader().CheckIndexes(before_read, damages));
  }
  const auto check =
      [&](const std::string& name, const FileIdentity& identity,
          const std::function<absl::Status(const ReadableFile&)>& read)
      -> absl::Status {
    const std::string path = absl::StrCat(path_, "/", name);
    const auto file = OpenReadableFile(AT_FDCWD, path, path);
    // Another archive at the same path has a check of its own.
    if (!file.ok() || file->identity != identity) {
      return absl::OkStatus();
    }
    return NoteDamage(read(*file), damages);
  };
  const Codec::Origin& origin = codec_->origin;
  if (origin.dictionary_hash != 0) {
    QUIRE_RETURN_IF_ERROR(check(
        DictionaryFileName(origin.dictionary_hash), origin.dictionary_file,
        [&](const ReadableFile& file) {
          return CheckDictionaryFile(file, origin.dictionary_hash, before_read);
        }));
  }
  if (origin.symbol_table_hash == 0) {
    return absl::OkStatus();
  }
  return check(
      SymbolTableFileName(origin.symbol_table_hash), origin.symbol_table_file,
      [&](const ReadableFile& file) -> absl::Status {
        QUIRE_RETURN_IF_ERROR(before_read(file.fd.get(), 0, file.size_bytes()));
        return ReadSymbolTableFile(file, {.hash = origin.symbol_table_hash,
                                          .size_bytes = static_cast<uint32_t>(
                                              info_.symbol_table_size_bytes)})
            .status();
      });
}

absl::Status Archive::CheckManifest(const BeforeRead& before_read,
                                    std::vector<absl::Status>& damages) const {
  auto directory = OpenDirectoryOnly(path_);
  if (!directory.ok()) {
    // The archive was removed.
    return absl::OkStatus();
  }
  const std::string path = absl::StrCat(path_, "/", kManifestFileName);
  const auto file =
      OpenReadableFile(directory->fd.get(), kManifestFileName, path);
  if (absl::IsNotFound(file.status())) {
    return NoteDamage(InFile(path, Damaged("it is missing")), damages);
  }
  QUIRE_RETURN_IF_ERROR(file.status());
  QUIRE_RETURN_IF_ERROR(before_read(file->fd.get(), 0, file->size_bytes()));
  // That of a later state is as good.
  return NoteDamage(ReadManifest(*directory), damages);
}

void Archive::VisitMemoryParts(
    absl::FunctionRef<void(const void* object, uint64_t bytes_max)> visit)
    const {
  uint64_t own_bytes = memory_bytes_max_;
  const auto visit_part = [&](const void* object, uint64_t bytes_max) {
    own_bytes -= bytes_max;
    visit(object, bytes_max);
  };
  visit_part(codec_.get(), codec_->memory_bytes_max);
  for (const Segment& segment : segments_) {
    visit_part(segment.opened.get(), segment.opened->memory_bytes_max());
    if (segment.filter != nullptr) {
      visit_part(
          segment.filter.get(),
          IdFilter::EstimateBytes(segment.opened->description.document_count));
    }
  }
  visit(this, own_bytes);
}

uint32_t Archive::SegmentNumber(uint32_t segment_index) const {
  return segments_[segment_index].opened->description.number;
}

uint64_t Archive::OpenedSegmentId(uint32_t segment_index) const {
  return segments_[segment_index].opened->id;
}

bool Archive::MayHaveChanged(const Archive& archive) {
  const std::string file = absl::StrCat(archive.path(), "/", kManifestFileName);
  const absl::StatusOr<ReadableFile> manifest =
      OpenReadableFile(AT_FDCWD, file, file);
  return !manifest.ok() || manifest->identity != archive.files_.front();
}

std::optional<ArchiveView> Archive::FindState(absl::string_view uuid) const {
  if (uuid == info_.uuid) {
    return *this;
  }
  const auto uuid_of = [this](uint32_t i) {
    return absl::string_view(StateAt(i).uuid);
  };
  const auto found = std::ranges::lower_bound(states_, uuid, {}, uuid_of);
  if (found == states_.end() || uuid_of(*found) != uuid) {
    return std::nullopt;
  }
  if (*found < info_.history.size()) {
    return ArchiveView(*this, StateAt(*found));
  }
  // All states since the last removal have the same removed documents.
  const std::string& since =
      info_.history.empty() ? info_.uuid : info_.history.front().uuid;
  return ArchiveView(*this, StateAt(*found),
                     std::max<uint64_t>(1, Checksum64(AsBytes(since))));
}

const ArchiveState& Archive::StateAt(uint32_t index) const {
  const size_t history_count = info_.history.size();
  return index < history_count ? info_.history[index]
                               : info_.redacted_states[index - history_count];
}

const SegmentReader& Archive::SegmentOf(BlockAddress block) const {
  return segments_[block.segment_index].reader();
}

uint32_t Archive::BlockSizeBytes(BlockAddress block) const {
  return SegmentOf(block).BlockSizeBytes(block.block_index);
}

Extent Archive::BlockExtent(BlockAddress block) const {
  return SegmentOf(block).BlockExtent(block.block_index);
}

uint64_t Archive::SegmentBlockCount(uint32_t segment_index) const {
  return segments_[segment_index].reader().block_count();
}

const BlockSpans& Archive::SegmentBlocks(uint32_t segment_index) const {
  return segments_[segment_index].reader().blocks();
}

uint64_t Archive::FirstOrdinal(uint32_t segment_index) const {
  return segments_[segment_index].first_ordinal;
}

uint64_t Archive::SegmentStart(uint32_t segment_index) const {
  return segments_[segment_index].start;
}

const SegmentLayout& Archive::SegmentLayoutOf(uint32_t segment_index) const {
  return segments_[segment_index].reader().layout();
}

absl::Status Archive::DecodeBlock(BlockAddress block, ByteView frame,
                                  std::span<const BlockPart> parts,
                                  PayloadCodec::Scratch& scratch) const {
  return SegmentOf(block).DecodeBlock(block.block_index, frame, parts, codec(),
                                      scratch);
}

absl::Status Archive::CheckBlock(BlockAddress block, ByteView frame) const {
  return SegmentOf(block).CheckBlock(block.block_index, frame);
}

absl::Status Archive::ReadBlock(BlockAddress block, MutableByteView raw,
                                PayloadCodec::Scratch& scratch) const {
  const SegmentReader& segment = SegmentOf(block);
  std::vector<uint8_t> frame;
  QUIRE_RETURN_IF_ERROR(segment.ReadFrame(block.block_index, frame).status());
  return segment.DecodeCheckedFrame(block.block_index, frame, raw, codec(),
                                    scratch);
}

const SegmentReader& Archive::ReaderOf(uint32_t segment_index) const {
  return segments_[segment_index].reader();
}

absl::StatusOr<std::vector<TextChecksum>> Archive::ReadTextChecksums(
    uint32_t segment_index) const {
  return SegmentOf({segment_index, 0}).ReadTextChecksums();
}

absl::StatusOr<Payload> Archive::ReadPayload(
    BlockAddress block, std::vector<uint8_t>& frame) const {
  QUIRE_RETURN_IF_ERROR(
      SegmentOf(block).ReadFrame(block.block_index, frame).status());
  return ParseFrame(frame, BlockSizeBytes(block));
}

size_t Archive::SegmentIndexAt(uint64_t offset) const {
  const auto after = std::upper_bound(
      segments_.begin(), segments_.end(), offset,
      [](uint64_t value, const Segment& s) { return value < s.start; });
  return static_cast<size_t>(std::prev(after) - segments_.begin());
}

absl::StatusOr<std::vector<BlockSlice>> Archive::Plan(
    LogicalRange range) const {
  if (range.offset.value > info_.size_bytes ||
      range.size_bytes > info_.size_bytes - range.offset.value) {
    return absl::OutOfRangeError(
        absl::StrCat("bytes ", range.offset.value, " + ", range.size_bytes,
                     " end past the archive's ", info_.size_bytes, " bytes"));
  }
  std::vector<BlockSlice> slices;
  if (range.size_bytes == 0) {
    return slices;
  }
  size_t segment_index = SegmentIndexAt(range.offset.value);
  uint64_t offset = range.offset.value - segments_[segment_index].start;
  uint64_t left = range.size_bytes;
  for (; left > 0; ++segment_index, offset = 0) {
    const SegmentReader& reader = segments_[segment_index].reader();
    const uint64_t size_bytes = std::min(left, reader.size_bytes() - offset);
    PlanInSegment(segment_index, offset, size_bytes, slices);
    left -= size_bytes;
  }
  return slices;
}

void Archive::PlanInSegment(size_t segment_index, uint64_t offset,
                            uint64_t size_bytes,
                            std::vector<BlockSlice>& slices) const {
  const SegmentReader& reader = segments_[segment_index].reader();
  const SegmentLayout& layout = reader.layout();
  const uint64_t end = offset + size_bytes;
  for (uint64_t run = layout.RunAt(offset); offset < end; ++run) {
    SegmentLayout::StoredPiece piece = layout.PieceOf(run, offset);
    piece.size_bytes = std::min(piece.size_bytes, end - offset);
    offset += piece.size_bytes;
    uint64_t block_index = reader.blocks().BlockAt(piece.stored_offset);
    uint64_t offset_in_block =
        piece.stored_offset - reader.blocks().StartOf(block_index);
    for (; piece.size_bytes > 0; ++block_index, offset_in_block = 0) {
      BlockSlice slice;
      slice.block.segment_index = static_cast<uint32_t>(segment_index);
      slice.block.block_index = block_index;
      slice.offset_in_block = static_cast<uint32_t>(offset_in_block);
      slice.size_bytes = static_cast<uint32_t>(std::min<uint64_t>(
          piece.size_bytes,
          reader.BlockSizeBytes(block_index) - offset_in_block));
      slices.push_back(slice);
      piece.size_bytes -= slice.size_bytes;
    }
  }
}

}  // namespace quire
