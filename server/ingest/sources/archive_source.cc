// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/archive_source.h"

#include <fcntl.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/archive_part.h"
#include "server/archive/document_captures.h"
#include "server/archive/field_reader.h"
#include "server/archive/files/file_io.h"
#include "server/archive/format/archive_format.h"
#include "server/ingest/sources/archive_deposit.h"
#include "server/ingest/sources/archive_text.h"

namespace quire {
namespace {

std::vector<uint32_t> AllColumns(const Archive& archive) {
  std::vector<uint32_t> columns(archive.fields().size());
  std::iota(columns.begin(), columns.end(), uint32_t{0});
  return columns;
}

// Start of the document in the logical space, which may be the end of all.
uint64_t StartOf(const Archive& archive, uint64_t ordinal) {
  const absl::StatusOr<LogicalRange> range =
      archive.GetDocumentRange({ordinal});
  return range.ok() ? range->offset.value : archive.info().size_bytes;
}

class ArchiveReader final : public SourceReader {
 public:
  ArchiveReader(std::shared_ptr<const Archive> archive, uint32_t threads,
                uint64_t first_ordinal)
      : archive_(std::move(archive)),
        threads_(threads),
        next_ordinal_(first_ordinal),
        fields_(*archive_, AllColumns(*archive_),
                BlockingPartLoader(*archive_)),
        captures_(*archive_),
        deposits_(archive_, StartOf(*archive_, first_ordinal)) {}

  absl::StatusOr<std::optional<SourceDocument>> Next() override {
    if (next_ordinal_ == archive_->info().document_count) {
      return std::nullopt;
    }
    QUIRE_ASSIGN_OR_RETURN(Document document,
                           archive_->GetDocument({next_ordinal_}));
    ++next_ordinal_;
    offset_ = document.range.offset.value;
    end_ = offset_ + document.range.size_bytes;
    QUIRE_RETURN_IF_ERROR(
        fields_.Read(document.ordinal, field_values_).status());
    std::vector<SourceValue> values(field_values_.size());
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = {.form = SourceValue::Form::kTyped,
                   .value = ValueOf(field_values_[i])};
    }
    SourceDocument found = {.id = std::move(document.id),
                            .size_bytes = document.range.size_bytes,
                            .capture_time_ms = document.capture_time_ms,
                            .record_type = std::move(document.record_type),
                            .media_type = std::move(document.media_type),
                            .fields = std::move(values)};
    QUIRE_ASSIGN_OR_RETURN(const std::optional<NewCapture> capture,
                           captures_.Find(document.ordinal, found.id));
    if (capture.has_value()) {
      found.record = CrawlRecord{.url = std::string(capture->url),
                                 .status = capture->status,
                                 .digest = std::string(capture->digest),
                                 .key = std::string(capture->key)};
    }
    ArchiveDeposits::Found deposit = deposits_.At(offset_);
    if (deposit.file != nullptr) {
      found.deposit = std::move(deposit.source);
      found.deposit_path = std::string(deposit.file->path);
    }
    return found;
  }

  std::string Place() const override {
    return absl::StrCat("document ", next_ordinal_ - 1, " (from 0)");
  }

  absl::StatusOr<size_t> Read(MutableByteView out) override {
    if (offset_ == end_) {
      return size_t{0};
    }
    QUIRE_RETURN_IF_ERROR(MoveText());
    QUIRE_ASSIGN_OR_RETURN(const ByteView piece, text_->Peek());
    const auto size = static_cast<size_t>(
        std::min<uint64_t>(std::min(piece.size(), out.size()), end_ - offset_));
    std::ranges::copy(piece.first(size), out.begin());
    text_->Take(size);
    offset_ += size;
    text_offset_ = offset_;
    return size;
  }

  absl::StatusOr<uint64_t> Skip(uint64_t size_bytes) override {
    const uint64_t skipped = std::min(size_bytes, end_ - offset_);
    offset_ += skipped;
    return skipped;
  }

 private:
  // Moves text_ to offset_. Skipped text is not worth decoding, unless there is
  // so little of it that it is decoded already.
  absl::Status MoveText() {
    const bool is_near = text_ != nullptr && text_offset_ <= offset_ &&
                         offset_ - text_offset_ <= text_->ahead_size_bytes();
    while (is_near && text_offset_ < offset_) {
      const absl::StatusOr<ByteView> piece = text_->Peek();
      if (!piece.ok() || piece->empty()) {
        // Damage in skipped text does not matter.
        break;
      }
      const auto size = static_cast<size_t>(
          std::min<uint64_t>(piece->size(), offset_ - text_offset_));
      text_->Take(size);
      text_offset_ += size;
    }
    if (text_ == nullptr || text_offset_ != offset_) {
      text_.reset();
      QUIRE_ASSIGN_OR_RETURN(text_,
                             ArchiveText::Create(archive_, threads_, offset_));
      text_offset_ = offset_;
    }
    return absl::OkStatus();
  }

  const std::shared_ptr<const Archive> archive_;
  const uint32_t threads_;
  uint64_t next_ordinal_;
  // Rest of the current document, in the logical space.
  uint64_t offset_ = 0;
  uint64_t end_ = 0;
  // Created when text is first read; and its position.
  std::unique_ptr<ArchiveText> text_;
  uint64_t text_offset_ = 0;
  DocumentFieldReader fields_;
  DocumentCaptures captures_;
  // Those of the current document.
  std::vector<FieldView> field_values_;
  ArchiveDeposits deposits_;
};

}  // namespace

std::vector<SourceField> ArchiveSource::fields() const {
  std::vector<SourceField> fields;
  for (const FieldColumn& column : archive_->fields()) {
    fields.push_back({.name = column.name, .type = column.type});
  }
  return fields;
}

UnreadInputs ArchiveSource::unread_inputs() const {
  if (first_ordinal_.has_value()) {
    return {};
  }
  const ArchiveInfo& info = archive_->info();
  return {.count = info.unread_input_count, .messages = info.unread_inputs};
}

absl::StatusOr<std::unique_ptr<SourceReader>> ArchiveSource::Open() const {
  return std::make_unique<ArchiveReader>(archive_, threads_,
                                         first_ordinal_.value_or(0));
}

bool IsArchive(const std::string& path) {
  const std::string file = absl::StrCat(path, "/", kManifestFileName);
  const absl::StatusOr<ReadableFile> manifest =
      OpenReadableFile(AT_FDCWD, file, file);
  Magic magic = {};
  return manifest.ok() &&
         ReadExactly(manifest->fd.get(), 0, magic, file).ok() &&
         magic == kManifestMagic;
}

absl::StatusOr<std::unique_ptr<Source>> OpenArchiveSource(
    const std::string& path, uint32_t threads) {
  QUIRE_ASSIGN_OR_RETURN(std::shared_ptr<const Archive> archive,
                         Archive::Open(path));
  const std::string& unknown = archive->info().unknown_part;
  if (!unknown.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": ", unknown,
        " that this program does not know and would leave out: use a newer "
        "one"));
  }
  return std::make_unique<ArchiveSource>(std::move(archive), threads);
}

uint64_t CountRepeatedIds(const Archive& archive) {
  uint64_t repeated_count = 0;
  std::optional<std::string> previous;
  archive.VisitDocuments("", std::nullopt, [&](const Document& document) {
    if (previous == document.id) {
      ++repeated_count;
    }
    previous = document.id;
    return true;
  });
  return repeated_count;
}

}  // namespace quire
