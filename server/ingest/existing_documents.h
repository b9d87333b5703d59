// SPDX-License-Identifier: GPL-3.0-or-later
//
// Leaves documents out of a source that an archive has already.
#ifndef QUIRE_SERVER_INGEST_EXISTING_DOCUMENTS_H_
#define QUIRE_SERVER_INGEST_EXISTING_DOCUMENTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/payload/payload_codec.h"
#include "server/archive/archive.h"
#include "server/ingest/sources/source.h"

namespace quire {

// Documents of one source that an archive has: by their number in the source,
// from 0, the checksum of their id.
using ExistingDocuments = absl::flat_hash_map<uint64_t, uint64_t>;

// Compares the documents of a source with those of an archive: id, record type,
// capture time, size and all bytes. Thread-compatible.
class ExistingDocumentFinder {
 public:
  // `archive` must outlive it. `on_read` gets the number of bytes that were
  // read of the source, periodically; an error from it ends the search.
  ExistingDocumentFinder(
      const Archive& archive,
      std::function<absl::Status(uint64_t size_bytes)> on_read)
      : archive_(archive),
        scratch_(archive.codec().NewScratch()),
        on_read_(std::move(on_read)) {}

  // Returns the documents of `source` that the archive has. A document that
  // cannot be read is not among them, nor are later ones unless the source can
  // continue: the build that follows reports them.
  // Errors: those of `on_read`; DataLoss  a block of the archive is damaged.
  absl::StatusOr<ExistingDocuments> Find(const Source& source);

 private:
  // Returns the ranges of documents of the archive that agree with `document`
  // in everything except, perhaps, their bytes.
  std::vector<LogicalRange> Candidates(const SourceDocument& document) const;
  // Returns true if the current document has the bytes of one of `candidates`;
  // unset if it cannot be read.
  absl::StatusOr<std::optional<bool>> HasBytesOf(
      SourceReader& reader, std::vector<LogicalRange> candidates);
  // Compares text with that of the archive from `offset` on.
  absl::StatusOr<bool> Equals(uint64_t offset, ByteView text);

  const Archive& archive_;
  const std::unique_ptr<PayloadCodec::Scratch> scratch_;
  const std::function<absl::Status(uint64_t size_bytes)> on_read_;
  std::vector<uint8_t> buffer_;
  // The last decoded block.
  std::vector<uint8_t> block_;
  std::optional<BlockAddress> decoded_;
};

// A source without its existing documents. Immutable, thread-safe.
class NewDocumentSource final : public Source {
 public:
  NewDocumentSource(std::unique_ptr<Source> source, ExistingDocuments existing)
      : source_(std::move(source)),
        existing_(
            std::make_shared<const ExistingDocuments>(std::move(existing))) {}

  const std::string& name() const override { return source_->name(); }

  const char* kind() const override { return source_->kind(); }

  absl::StatusOr<std::optional<uint64_t>> StoredSizeBytes() const override {
    return source_->StoredSizeBytes();
  }

  // The reader fails (FailedPrecondition) if another document than before has
  // the number of an existing one: the source has changed.
  absl::StatusOr<std::unique_ptr<SourceReader>> Open() const override;

 private:
  const std::unique_ptr<Source> source_;
  const std::shared_ptr<const ExistingDocuments> existing_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_EXISTING_DOCUMENTS_H_
