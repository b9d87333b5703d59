// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/text/reordered_text.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Size of a chunk of short texts, the unit of deduplication.
constexpr uint32_t kChunkSizeBytes = 2 << 10;
// Limit on remembered chunks; later chunks are only compared with them.
constexpr size_t kChunkCountMax = size_t{1} << 23;
// Text written to the file at once.
constexpr size_t kWriteSizeBytes = 1 << 20;

constexpr char kReorderedContents[] = "the text to be stored";

// Returns a larger size for texts with too many chunks.
uint32_t ChunkSizeFor(uint64_t segment_size_bytes) {
  uint32_t size_bytes = kChunkSizeBytes;
  while (size_bytes < kChunkSizeBytesMax &&
         segment_size_bytes / size_bytes > kChunkCountMax) {
    size_bytes *= 2;
  }
  return size_bytes;
}

void AppendTo(std::vector<uint8_t>& bytes, ByteView more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

}  // namespace

absl::Status ReadStoredText(const InputFile& file, uint64_t offset,
                            MutableByteView out) {
  while (!out.empty()) {
    QUIRE_ASSIGN_OR_RETURN(const size_t got, file.ReadAt(offset, out));
    if (got == 0) {
      return StoredTextChanged(file);
    }
    out = out.subspan(got);
    offset += got;
  }
  return absl::OkStatus();
}

absl::Status StoredTextChanged(const InputFile& file) {
  return absl::DataLossError(absl::StrCat(
      file.name(),
      " differs from the text written to its file; check the device, "
      "and build the archive again"));
}

absl::StatusOr<std::unique_ptr<TextReorderer>> TextReorderer::Create(
    const ReorderOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(
      Spool spool, Spool::Create(options.spool_directory, kReorderedContents));
  std::unique_ptr<TextReorderer> reorderer(
      new TextReorderer(std::move(spool), options));
  if (options.moves != ReorderOptions::Moves::kNothing) {
    QUIRE_ASSIGN_OR_RETURN(
        reorderer->moved_spool_,
        Spool::Create(options.spool_directory, kReorderedContents));
  }
  return reorderer;
}

TextReorderer::TextReorderer(Spool spool, const ReorderOptions& options)
    : options_(options),
      chunker_(ChunkSizeFor(options.segment_size_bytes)),
      unit_size_bytes_min_(std::max<uint64_t>(
          kRunPairSizeBytesMin, options.segment_size_bytes / kChunkCountMax)),
      spool_(std::move(spool)),
      memory_(options.memory_bytes_max) {
  QUIRE_CHECK(options_.duplicate_size_bytes_min >= kRunPairSizeBytesMin,
              "duplicates are shorter than a pair of runs");
}

absl::Status TextReorderer::Add(ByteView piece) {
  document_size_bytes_ += piece.size();
  segment_text_size_bytes_ += piece.size();
  text_checksums_.Add(piece);
  pending_.erase(pending_.begin(),
                 pending_.begin() + static_cast<ptrdiff_t>(pending_used_));
  pending_used_ = 0;
  AppendTo(pending_, piece);
  const ByteView text = pending_;
  while (text.size() - pending_used_ >= chunker_.size_bytes_max()) {
    const size_t size = chunker_.Next(text.subspan(pending_used_));
    QUIRE_RETURN_IF_ERROR(Place(text.subspan(pending_used_, size)));
    pending_used_ += size;
  }
  return HoldTables();
}

absl::Status TextReorderer::SetFields(std::vector<FieldColumn> columns) {
  fields_ = std::move(columns);
  return segment_.documents.AddFieldColumns(fields_);
}

absl::Status TextReorderer::EndDocument(NewDocument document) {
  const ByteView text = pending_;
  while (pending_used_ < text.size()) {
    const size_t size = chunker_.Next(text.subspan(pending_used_));
    QUIRE_RETURN_IF_ERROR(Place(text.subspan(pending_used_, size)));
    pending_used_ += size;
  }
  pending_.clear();
  pending_used_ = 0;
  document.size_bytes = std::exchange(document_size_bytes_, 0);
  return segment_.documents.Add(document);
}

absl::Status TextReorderer::Place(ByteView chunk) {
  uint64_t offset = 0;
  QUIRE_ASSIGN_OR_RETURN(const bool found, FindDuplicate(chunk, offset));
  if (!found) {
    QUIRE_RETURN_IF_ERROR(EndDuplicates());
    if (chunk.size() >= kRunPairSizeBytesMin &&
        chunk_offsets_.size() < kChunkCountMax) {
      const auto number = static_cast<uint32_t>(chunk_offsets_.size());
      if (chunk_numbers_.Add(Checksum64(chunk), number) == number) {
        chunk_offsets_.Append(stored_size_bytes_);
      }
    }
    return Store(chunk);
  }
  if (duplicates_.stored_offset + duplicates_.size_bytes != offset) {
    QUIRE_RETURN_IF_ERROR(EndDuplicates());
    duplicates_.stored_offset = offset;
  }
  if (duplicates_.size_bytes < options_.duplicate_size_bytes_min) {
    AppendTo(held_, chunk);
  }
  duplicates_.size_bytes += chunk.size();
  return absl::OkStatus();
}

absl::StatusOr<bool> TextReorderer::FindDuplicate(ByteView chunk,
                                                  uint64_t& offset) {
  // Try the position after the previous duplicate first; also for chunks that
  // are short because their document ends.
  if (duplicates_.size_bytes > 0) {
    offset = duplicates_.stored_offset + duplicates_.size_bytes;
    QUIRE_ASSIGN_OR_RETURN(const bool goes_on, IsStoredAt(offset, chunk));
    if (goes_on) {
      return true;
    }
  }
  if (chunk.size() < kRunPairSizeBytesMin) {
    return false;
  }
  const std::optional<uint32_t> known = chunk_numbers_.Find(Checksum64(chunk));
  if (!known.has_value()) {
    return false;
  }
  offset = chunk_offsets_[*known];
  return IsStoredAt(offset, chunk);
}

absl::StatusOr<bool> TextReorderer::IsStoredAt(uint64_t offset,
                                               ByteView chunk) {
  if (offset > stored_size_bytes_ ||
      chunk.size() > stored_size_bytes_ - offset) {
    return false;
  }
  const uint64_t written_bytes = spool_.size_bytes() - segment_offset_;
  const auto in_file = static_cast<size_t>(std::min<uint64_t>(
      chunk.size(), written_bytes - std::min(offset, written_bytes)));
  if (in_file > 0) {
    compared_.resize(in_file);
    QUIRE_RETURN_IF_ERROR(spool_.ReadAt(segment_offset_ + offset, compared_));
    if (!std::ranges::equal(compared_, chunk.first(in_file))) {
      return false;
    }
  }
  const ByteView rest = chunk.subspan(in_file);
  return rest.empty() ||
         std::ranges::equal(
             rest, ByteView(unwritten_)
                       .subspan(offset + in_file - written_bytes, rest.size()));
}

absl::Status TextReorderer::EndDuplicates() {
  const StoredRun run = std::exchange(duplicates_, {});
  if (run.size_bytes >= options_.duplicate_size_bytes_min) {
    runs_.Append(run.size_bytes, run.stored_offset);
  } else if (run.size_bytes > 0) {
    QUIRE_RETURN_IF_ERROR(Store(held_));
  }
  held_.clear();
  return absl::OkStatus();
}

absl::Status TextReorderer::Store(ByteView text) {
  runs_.Append(text.size(), stored_size_bytes_);
  if (moved_spool_.has_value() && BeginsUnit()) {
    units_.Append(stored_size_bytes_);
    unit_offset_ = stored_size_bytes_;
  }
  stored_size_bytes_ += text.size();
  return Write(text, spool_);
}

bool TextReorderer::BeginsUnit() const {
  return units_.size() == 0 ||
         stored_size_bytes_ - unit_offset_ >= unit_size_bytes_min_;
}

absl::Status TextReorderer::Write(ByteView text, Spool& spool) {
  AppendTo(unwritten_, text);
  return unwritten_.size() >= kWriteSizeBytes ? Flush(spool) : absl::OkStatus();
}

absl::Status TextReorderer::Flush(Spool& spool) {
  const bool moves_on = moved_spool_.has_value() && &spool == &spool_;
  (moves_on ? segment_checksum_ : checksum_).Add(unwritten_);
  QUIRE_RETURN_IF_ERROR(spool.Append(unwritten_));
  unwritten_.clear();
  return absl::OkStatus();
}

absl::Status TextReorderer::HoldTables() {
  const uint64_t now_bytes =
      runs_.MemoryBytes() + chunk_numbers_.MemoryBytes() +
      chunk_offsets_.MemoryBytes() + units_.MemoryBytes();
  const uint64_t later_bytes =
      moved_spool_.has_value()
          ? TextMigration::MemoryBytesMax(units_.size(), runs_.size())
          : 0;
  const double share_done =
      static_cast<double>(std::max<uint64_t>(1, segment_text_size_bytes_)) /
      static_cast<double>(std::max<uint64_t>(
          {1, options_.segment_size_bytes, segment_text_size_bytes_}));
  return memory_.Hold(earlier_run_bytes_ + std::max(now_bytes, later_bytes),
                      share_done);
}

absl::Status TextReorderer::EndSegment() {
  QUIRE_RETURN_IF_ERROR(EndDuplicates());
  QUIRE_RETURN_IF_ERROR(Flush(spool_));
  segment_.layout.checksums = text_checksums_.Take();
  segment_.layout.stored_text_size_bytes = std::exchange(stored_size_bytes_, 0);
  QUIRE_RETURN_IF_ERROR(HoldTables());
  segment_.layout.runs = std::exchange(runs_, {}).Take();
  // Free before the tables of similar text are created.
  chunk_numbers_ = {};
  chunk_offsets_ = {};
  if (moved_spool_.has_value()) {
    QUIRE_RETURN_IF_ERROR(MigrateSegment());
  }
  earlier_run_bytes_ += segment_.layout.runs.size() * sizeof(StoredRun);
  text_.segments.push_back(std::exchange(segment_, {}));
  QUIRE_RETURN_IF_ERROR(segment_.documents.AddFieldColumns(fields_));
  segment_offset_ = spool_.size_bytes();
  segment_text_size_bytes_ = 0;
  return absl::OkStatus();
}

absl::Status TextReorderer::MigrateSegment() {
  TextMigration migration(
      {.text = spool_,
       .checksum = std::exchange(segment_checksum_, {}).Get(),
       .units = units_,
       .price = options_.price,
       .memory = memory_,
       .other_held_bytes = earlier_run_bytes_,
       .seek_cost_bytes = options_.seek_cost_bytes});
  QUIRE_RETURN_IF_ERROR(migration.Run(
      segment_.layout.runs,
      [this](ByteView text) { return Write(text, *moved_spool_); }));
  QUIRE_RETURN_IF_ERROR(Flush(*moved_spool_));
  QUIRE_ASSIGN_OR_RETURN(
      spool_, Spool::Create(options_.spool_directory, kReorderedContents));
  units_ = {};
  return absl::OkStatus();
}

absl::StatusOr<ReorderedText> TextReorderer::Finish() {
  if (segment_.documents.count() > 0) {
    QUIRE_RETURN_IF_ERROR(EndSegment());
  }
  Spool& spool = moved_spool_.has_value() ? *moved_spool_ : spool_;
  text_.size_bytes = spool.size_bytes();
  text_.checksum = checksum_.Get();
  QUIRE_ASSIGN_OR_RETURN(text_.file,
                         std::move(spool).Finish(kReorderedContents));
  return std::move(text_);
}

}  // namespace quire
