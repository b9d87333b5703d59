// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/build_passes.h"

#include <algorithm>

#include "codecs/base/status_macros.h"
#include "server/ingest/text/reordered_text.h"

namespace quire {
namespace {

constexpr size_t kPieceSizeBytes = 1 << 20;
// Between two calls of on_progress.
constexpr uint64_t kProgressStepBytes = 2 << 20;

}  // namespace

BuildPasses::BuildPasses(std::span<const std::unique_ptr<Source>> sources,
                         const BuildOptions& options)
    : options_(options),
      fields_(sources),
      deposits_(options),
      walk_(sources,
            {.size_bytes_max = options.input_size_bytes_max,
             .failures = options.failures,
             .on_note = options.on_note,
             .cancel = options.cancel,
             .describes_sources = options.resume.describes_inputs,
             .on_first_read =
                 [this](SourceReader& reader, const SourceDocument& document) {
                   captures_.Count(document);
                   return fields_.Count(walk_.source_index(), reader, document);
                 },
             .on_counted =
                 [this](const SourceDocument& document, uint64_t size_bytes) {
                   deposits_.Count(walk_.source_index(), document, size_bytes);
                 }}),
      buffer_(kPieceSizeBytes) {}

absl::StatusOr<NewDocument> BuildPasses::ToNewDocument(
    const SourceReader& reader, const SourceDocument& document) {
  QUIRE_RETURN_IF_ERROR(
      fields_.Convert(walk_.source_index(), reader, document, field_values_));
  return NewDocument{.id = document.id,
                     .capture_time_ms = document.capture_time_ms,
                     .record_type = document.record_type,
                     .media_type = document.media_type,
                     .fields = field_values_,
                     .capture = captures_.Convert(document),
                     .deposit = deposits_.draft()};
}

absl::Status BuildPasses::StartPhase(BuildPhase phase,
                                     std::optional<uint64_t> total_bytes) {
  progress_.phase = phase;
  progress_.total_bytes = total_bytes;
  progress_.done_bytes = 0;
  reported_bytes_ = 0;
  Report();
  return walk_.CheckCancelled();
}

void BuildPasses::Report() {
  if (options_.on_progress) {
    options_.on_progress(progress_);
  }
}

void BuildPasses::Advance(uint64_t size_bytes) {
  progress_.done_bytes += size_bytes;
  if (progress_.done_bytes >= reported_bytes_ + kProgressStepBytes) {
    reported_bytes_ = progress_.done_bytes;
    Report();
  }
}

absl::StatusOr<uint64_t> BuildPasses::Count() {
  QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kCount, std::nullopt));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t counted_bytes,
                         walk_.Count([this](uint64_t size_bytes) {
                           Advance(size_bytes - progress_.done_bytes);
                         }));
  QUIRE_RETURN_IF_ERROR(fields_.EndCount());
  return counted_bytes;
}

absl::Status BuildPasses::FeedDocument(SourceReader& reader,
                                       const AddText& add) {
  return walk_.ReadDocument(reader, buffer_, [&](ByteView piece) {
    Advance(piece.size());
    return add(piece);
  });
}

absl::Status BuildPasses::FeedDocuments(const AddText& add) {
  return walk_.ForEachDocument([&](SourceReader& reader,
                                   const SourceDocument&) {
    return walk_.ReadDocument(
        reader, buffer_, [&](ByteView piece) -> absl::Status {
          const uint64_t rest = *progress_.total_bytes - progress_.done_bytes;
          piece = piece.first(std::min<uint64_t>(piece.size(), rest));
          if (!piece.empty()) {
            QUIRE_RETURN_IF_ERROR(add(piece));
          }
          Advance(piece.size());
          return absl::OkStatus();
        });
  });
}

absl::Status BuildPasses::FeedFile(const InputFile& file, const AddText& add) {
  const uint64_t size_bytes = *progress_.total_bytes;
  while (progress_.done_bytes < size_bytes) {
    const MutableByteView piece = MutableByteView(buffer_).first(
        std::min<uint64_t>(buffer_.size(), size_bytes - progress_.done_bytes));
    QUIRE_RETURN_IF_ERROR(walk_.CheckCancelled());
    QUIRE_RETURN_IF_ERROR(ReadStoredText(file, progress_.done_bytes, piece));
    QUIRE_RETURN_IF_ERROR(add(piece));
    Advance(piece.size());
  }
  return absl::OkStatus();
}

}  // namespace quire
