// SPDX-License-Identifier: GPL-3.0-or-later
//
// Index of a segment's documents in RAM.
#ifndef QUIRE_SERVER_ARCHIVE_INDEX_DOCUMENT_INDEX_H_
#define QUIRE_SERVER_ARCHIVE_INDEX_DOCUMENT_INDEX_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "server/archive/format/archive_description.h"
#include "server/archive/format/segment_format.h"
#include "server/archive/index/capture_order.h"
#include "server/archive/index/elias_fano.h"
#include "server/archive/index/id_index.h"
#include "server/archive/index/packed_vector.h"

namespace quire {

// A column of strings with few different values, one per document. The
// different strings are stored as in the section, each after its length. A
// section therefore takes little more RAM than its own size, whatever its
// contents. Movable. Thread-safe.
class StringColumn {
 public:
  // All empty.
  StringColumn() = default;
  // `section` is untrusted. Errors: DataLoss.
  static absl::StatusOr<StringColumn> Parse(ByteView section, uint64_t count);

  // Valid as long as the column. REQUIRES: index < count.
  absl::string_view operator[](uint64_t index) const;

  // True if the section has this string, which is not empty.
  bool Has(absl::string_view text) const;

  // Size of the longest string.
  uint64_t SizeBytesMax() const { return size_bytes_max_; }

  uint64_t MemoryBytes() const;
  // Upper bound on MemoryBytes().
  static uint64_t EstimateBytes(uint64_t section_size_bytes, uint64_t count);

 private:
  // Lengths and strings, alternating.
  std::string strings_;
  uint64_t size_bytes_max_ = 0;
  // Offset in `strings_` of every 32nd.
  PackedVector begins_;
  // 0 for the empty string, otherwise the index of the string plus one.
  PackedVector values_;
};

// Positions are the segment's own: ordinals and offsets from its start.
// Movable. Thread-safe.
class DocumentIndex {
 public:
  // No documents.
  DocumentIndex();

  // Decompresses a section; nullopt if the segment has none of this type.
  using Load =
      std::function<absl::StatusOr<std::optional<std::string>>(SectionType)>;
  // Errors: DataLoss  a section contradicts the footer or itself; the message
  //                   names the section. With `damages`, errors of ids and
  //                   attributes are added to it instead, and the documents
  //                   have none.
  static absl::StatusOr<DocumentIndex> Parse(
      const SegmentFooter& footer, const Load& load,
      std::vector<absl::Status>* damages = nullptr);

  uint64_t count() const { return starts_.size() - 1; }

  // REQUIRES for the following: ordinal < count().
  LogicalRange Range(uint64_t ordinal) const;
  // Returns the document without its ordinal and id.
  Document Describe(uint64_t ordinal) const;
  // Also empty if the ids are damaged.
  std::string Id(uint64_t ordinal) const;
  std::optional<int64_t> CaptureTimeMs(uint64_t ordinal) const;

  // True if it was opened without its ids, or without its record types.
  bool has_damaged_ids() const { return has_damaged_ids_; }

  // True if a document has, or had when the segment was written, this type.
  bool HasRecordType(absl::string_view type) const {
    return record_types_.Has(type);
  }

  bool has_damaged_record_types() const { return has_damaged_record_types_; }

  // Valid during the life of the index; empty if the document has none.
  absl::string_view MediaType(uint64_t ordinal) const {
    return media_types_[ordinal];
  }

  absl::string_view RecordType(uint64_t ordinal) const {
    return record_types_[ordinal];
  }

  // Like Archive::DescriptionSizeBytesMax(), for this segment.
  uint64_t DescriptionSizeBytesMax() const;

  // Returns the document that contains the byte. REQUIRES: it is within the
  // segment.
  uint64_t At(uint64_t offset) const;

  // Ids in order, by rank.
  const IdIndex& ids() const { return ids_; }

  // REQUIRES: rank < count(). Increases with the rank among equal ids.
  uint64_t OrdinalAtRank(uint64_t rank) const { return ids_.OrdinalAt(rank); }

  // Returns the best document of the id with `ranks`; nullopt if none has a
  // selected type. Takes the time of a few look-ups for any number of
  // documents.
  std::optional<Capture> FindCapture(IdIndex::Ranks ranks,
                                     const DocumentSelection& selection) const {
    return capture_order_.Find(*this, ranks, selection);
  }

  // As CaptureOrder::AddTypes().
  void AddRecordTypes(IdIndex::Ranks ranks, size_t count_max,
                      const OrdinalPredicate* is_left_out,
                      std::vector<std::string>& types) const {
    capture_order_.AddTypes(*this, ranks, count_max, is_left_out, types);
  }

  // Returns the rank of the first document above (id, ordinal), in that order,
  // if the first document here has the ordinal `first_ordinal`.
  uint64_t RankAbove(absl::string_view id, uint64_t ordinal,
                     uint64_t first_ordinal) const;

  // Upper bound on the memory of the capture times.
  static uint64_t EstimateTimesBytes(uint64_t section_size_bytes,
                                     uint64_t count);

  // Adds the memory of this index to the three parts for documents.
  void AddMemory(ArchiveMemory& memory) const;

 private:
  absl::Status ParseSizes(ByteView section, const SegmentFooter& footer);
  // Parses ids, their order and runs; `repeats` as in IdIndex::Parse().
  absl::Status ParseIds(const SegmentFooter& footer, const Load& load,
                        std::vector<bool>& repeats);
  absl::Status ParseAttribute(SectionType type, uint64_t count,
                              const Load& load);
  absl::Status ParseCaptureTimes(ByteView section, uint64_t count);

  // start + ordinal of each document, and of the end: the sum distinguishes
  // empty documents.
  EliasFano starts_;
  IdIndex ids_;
  // 0, or units since the first time plus one. Empty if no document has one.
  PackedVector capture_times_;
  int64_t first_capture_time_ms_ = 0;
  int64_t capture_time_unit_ms_ = 1;
  StringColumn media_types_;
  StringColumn record_types_;
  CaptureOrder capture_order_;
  bool has_damaged_ids_ = false;
  bool has_damaged_record_types_ = false;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_INDEX_DOCUMENT_INDEX_H_
