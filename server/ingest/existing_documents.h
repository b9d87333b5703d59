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

// A document of a source that an archive has.
struct ExistingDocument {
  // Number in the source, from 0.
  uint64_t number = 0;
  uint64_t id_checksum = 0;
};

// Those of one source, by number.
using ExistingDocuments = std::vector<ExistingDocument>;

// Compares the documents of a source with those of an archive: id, record type,
// capture time, size and all bytes. Thread-compatible.
class ExistingDocumentFinder {
 public:
  // `archive` must outlive it. All results together, and the documents of ids
  // that have many, may take `memory_bytes_max`. `on_read` gets the number of
  // bytes that were read of the source, periodically; an error from it ends the
  // search.
  ExistingDocumentFinder(
      const Archive& archive, uint64_t memory_bytes_max,
      std::function<absl::Status(uint64_t size_bytes)> on_read)
      : archive_(archive),
        memory_bytes_max_(memory_bytes_max),
        scratch_(archive.codec().NewScratch()),
        on_read_(std::move(on_read)) {}

  // Returns the documents of `source` that the archive has. A document that
  // cannot be read is not among them, nor are later ones unless the source can
  // continue: the build that follows reports them.
  // Errors: those of `on_read`; DataLoss  a block of the archive is damaged;
  //   ResourceExhausted  more memory is needed.
  absl::StatusOr<ExistingDocuments> Find(const Source& source);

  // Memory of all results, in bytes.
  uint64_t result_bytes() const { return result_bytes_; }

  // Number of blocks that were decoded.
  uint64_t decoded_block_count() const { return decoded_block_count_; }

 private:
  // A document of the archive. The checksums are those of its first MiB and of
  // all of its text.
  struct Candidate {
    LogicalRange range;
    uint64_t start_checksum = 0;
    uint64_t checksum = 0;
  };

  // Documents of one id, record type and capture time, in order of size.
  struct Group {
    std::vector<Candidate> candidates;
    // Candidates of one size are sorted by checksum, and equal texts dropped.
    bool has_checksums = false;
  };

  using TypeAndTime = std::pair<std::string, std::optional<int64_t>>;
  using GroupsOfId = absl::flat_hash_map<TypeAndTime, Group>;

  // Memory of a remembered document, if each is a group.
  static constexpr uint64_t kManyBytes =
      sizeof(Candidate) + 2 * sizeof(std::pair<TypeAndTime, Group>);

  // Returns the documents of the archive that agree with `document` in id, type
  // and time; null if there are none. `few` holds them if the id has few.
  absl::StatusOr<Group*> GroupOf(const SourceDocument& document, Group& few);
  // Groups all documents of an id.
  absl::StatusOr<GroupsOfId> GroupsOf(
      const std::vector<DocumentOrdinal>& ordinals);
  absl::Status AddChecksums(Group& group);
  // Returns true if the current document has the bytes of one of `group`; unset
  // if it cannot be read. `size_bytes` is its size if that is known.
  absl::StatusOr<std::optional<bool>> HasBytesOf(
      SourceReader& reader, std::optional<uint64_t> size_bytes, Group& group);
  // Reads the first MiB of the current document to `buffer_`; false if it
  // cannot be read.
  absl::StatusOr<bool> ReadStart(SourceReader& reader);
  // Same for the text of the document past `buffer_`. `candidates` begin with
  // `buffer_`.
  absl::StatusOr<std::optional<bool>> HasRestOf(
      SourceReader& reader, std::vector<LogicalRange> candidates);
  // Returns the candidates with the text in `buffer_`, from `offset` on.
  absl::StatusOr<std::vector<LogicalRange>> Equal(
      const std::vector<LogicalRange>& candidates, uint64_t offset);
  // Calls `visit` with the archive's text, in pieces, while it returns true.
  absl::Status VisitText(LogicalRange range,
                         const std::function<bool(ByteView text)>& visit);
  // Errors: ResourceExhausted  over the limit.
  absl::Status CheckMemory() const;

  const Archive& archive_;
  const uint64_t memory_bytes_max_;
  const std::unique_ptr<PayloadCodec::Scratch> scratch_;
  const std::function<absl::Status(uint64_t size_bytes)> on_read_;
  std::vector<uint8_t> buffer_;
  // The last decoded block.
  std::vector<uint8_t> block_;
  std::optional<BlockAddress> decoded_;
  uint64_t decoded_block_count_ = 0;
  // Ids with many documents; dropped if they have too many together.
  absl::flat_hash_map<std::string, GroupsOfId> many_;
  uint64_t many_count_ = 0;
  uint64_t result_bytes_ = 0;
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

  std::vector<SourceField> fields() const override { return source_->fields(); }

  UnreadInputs unread_inputs() const override {
    return source_->unread_inputs();
  }

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
