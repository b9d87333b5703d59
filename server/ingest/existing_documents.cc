// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/existing_documents.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kReadSizeBytes = size_t{1} << 20;

class NewDocumentReader final : public SourceReader {
 public:
  NewDocumentReader(std::unique_ptr<SourceReader> reader,
                    std::shared_ptr<const ExistingDocuments> existing,
                    std::string name)
      : reader_(std::move(reader)),
        existing_(std::move(existing)),
        name_(std::move(name)) {}

  absl::StatusOr<std::optional<SourceDocument>> Next() override {
    while (true) {
      QUIRE_ASSIGN_OR_RETURN(std::optional<SourceDocument> document,
                             reader_->Next());
      if (!document.has_value()) {
        return document;
      }
      const auto found = existing_->find(document_count_++);
      if (found == existing_->end()) {
        return document;
      }
      if (found->second != Checksum64(AsBytes(document->id))) {
        return absl::FailedPreconditionError(
            absl::StrCat(name_, ": ", reader_->Place(),
                         ": was another document before: the input changed "
                         "while it was read; try again"));
      }
    }
  }

  std::string Place() const override { return reader_->Place(); }

  absl::StatusOr<size_t> Read(MutableByteView out) override {
    return reader_->Read(out);
  }

  absl::StatusOr<uint64_t> Skip(uint64_t size_bytes) override {
    return reader_->Skip(size_bytes);
  }

  bool CanContinue() const override { return reader_->CanContinue(); }

  SkippedEntries skipped() const override { return reader_->skipped(); }

  void Listen(NoteListener listener) override {
    reader_->Listen(std::move(listener));
  }

 private:
  const std::unique_ptr<SourceReader> reader_;
  const std::shared_ptr<const ExistingDocuments> existing_;
  const std::string name_;
  uint64_t document_count_ = 0;
};

}  // namespace

absl::StatusOr<ExistingDocuments> ExistingDocumentFinder::Find(
    const Source& source) {
  ExistingDocuments existing;
  const absl::StatusOr<std::unique_ptr<SourceReader>> reader = source.Open();
  if (!reader.ok()) {
    return existing;
  }
  uint64_t number = 0;
  while (true) {
    QUIRE_RETURN_IF_ERROR(on_read_(0));
    const absl::StatusOr<std::optional<SourceDocument>> document =
        (*reader)->Next();
    if (!document.ok() && (*reader)->CanContinue()) {
      continue;
    }
    if (!document.ok() || !document->has_value()) {
      return existing;
    }
    std::vector<LogicalRange> candidates = Candidates(**document);
    if (!candidates.empty()) {
      QUIRE_ASSIGN_OR_RETURN(const std::optional<bool> is_there,
                             HasBytesOf(**reader, std::move(candidates)));
      if (!is_there.has_value() && !(*reader)->CanContinue()) {
        return existing;
      }
      if (is_there.value_or(false)) {
        existing.emplace(number, Checksum64(AsBytes((*document)->id)));
      }
    }
    ++number;
  }
}

std::vector<LogicalRange> ExistingDocumentFinder::Candidates(
    const SourceDocument& document) const {
  std::vector<LogicalRange> candidates;
  const absl::StatusOr<std::vector<DocumentOrdinal>> found =
      archive_.FindDocuments(document.id);
  if (!found.ok()) {
    return candidates;
  }
  for (const DocumentOrdinal ordinal : *found) {
    const absl::StatusOr<LogicalRange> range =
        archive_.GetDocumentRange(ordinal);
    if (!range.ok() || (document.size_bytes.has_value() &&
                        range->size_bytes != *document.size_bytes)) {
      continue;
    }
    const absl::StatusOr<Document> other = archive_.GetDocument(ordinal);
    if (other.ok() && other->record_type == document.record_type &&
        other->capture_time_ms == document.capture_time_ms) {
      candidates.push_back(*range);
    }
  }
  return candidates;
}

absl::StatusOr<std::optional<bool>> ExistingDocumentFinder::HasBytesOf(
    SourceReader& reader, std::vector<LogicalRange> candidates) {
  buffer_.resize(kReadSizeBytes);
  uint64_t offset = 0;
  while (!candidates.empty()) {
    const absl::StatusOr<size_t> got = reader.Read(buffer_);
    if (!got.ok()) {
      return std::optional<bool>();
    }
    QUIRE_RETURN_IF_ERROR(on_read_(*got));
    if (*got == 0) {
      return std::optional(
          std::ranges::any_of(candidates, [&](const LogicalRange& range) {
            return range.size_bytes == offset;
          }));
    }
    const ByteView text = ByteView(buffer_).first(*got);
    std::vector<LogicalRange> equal;
    for (const LogicalRange& range : candidates) {
      if (*got > range.size_bytes - offset) {
        continue;
      }
      QUIRE_ASSIGN_OR_RETURN(const bool is_equal,
                             Equals(range.offset.value + offset, text));
      if (is_equal) {
        equal.push_back(range);
      }
    }
    candidates = std::move(equal);
    offset += *got;
  }
  return std::optional(false);
}

absl::StatusOr<bool> ExistingDocumentFinder::Equals(uint64_t offset,
                                                    ByteView text) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<BlockSlice> slices,
                         archive_.Plan({{offset}, text.size()}));
  for (const BlockSlice& slice : slices) {
    if (decoded_ != slice.block) {
      decoded_.reset();
      block_.resize(archive_.BlockSizeBytes(slice.block));
      QUIRE_RETURN_IF_ERROR(archive_.ReadBlock(slice.block, block_, *scratch_));
      decoded_ = slice.block;
    }
    const ByteView stored =
        ByteView(block_).subspan(slice.offset_in_block, slice.size_bytes);
    if (!std::ranges::equal(stored, text.first(slice.size_bytes))) {
      return false;
    }
    text = text.subspan(slice.size_bytes);
  }
  return true;
}

absl::StatusOr<std::unique_ptr<SourceReader>> NewDocumentSource::Open() const {
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<SourceReader> reader, source_->Open());
  return std::make_unique<NewDocumentReader>(std::move(reader), existing_,
                                             name());
}

}  // namespace quire
