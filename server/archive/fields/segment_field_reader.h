// SPDX-License-Identifier: GPL-3.0-or-later
//
// Reads the fields of one segment.
#ifndef QUIRE_SERVER_ARCHIVE_FIELDS_SEGMENT_FIELD_READER_H_
#define QUIRE_SERVER_ARCHIVE_FIELDS_SEGMENT_FIELD_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "codecs/base/bytes.h"
#include "codecs/filter/field_value.h"
#include "server/archive/container/container_part.h"
#include "server/archive/fields/field_block.h"
#include "server/archive/fields/field_directory.h"

namespace quire {

// Consecutive documents, and bounds on their values.
struct FieldGroup {
  uint64_t first_ordinal = 0;
  uint64_t end_ordinal = 0;
  // One for each wanted column; their strings are valid until the next call of
  // the reader.
  std::vector<FieldRange> ranges;
};

// Parsed parts of readers that share it. Thread-compatible.
class FieldCache {
 public:
  static constexpr uint64_t kSizeBytesMax = uint64_t{16} << 20;

  // Forgets all if there is more than kSizeBytesMax.
  void Trim();

 private:
  friend class SegmentFieldReader;
  // Segment, and offset of the part in the container's data.
  using Key = std::pair<uint32_t, uint64_t>;

  struct Block {
    PartBytes bytes;
    FieldBlock block;
  };

  absl::flat_hash_map<Key, std::unique_ptr<const FieldPage>> pages_;
  absl::flat_hash_map<Key, std::unique_ptr<const Block>> blocks_;
  uint64_t size_bytes_ = 0;
  // Number of times that all was forgotten.
  uint64_t generation_ = 0;
};

// Thread-compatible.
class SegmentFieldReader {
 public:
  static constexpr size_t kNoColumn = SIZE_MAX;

  // `columns` are indexes in fields.columns(), or kNoColumn for a column of
  // nulls. `key` distinguishes segments with one cache. `fields` and `cache`
  // must outlive the reader.
  SegmentFieldReader(const SegmentFields& fields, std::vector<size_t> columns,
                     uint32_t key, FieldCache& cache, PartLoader load);

  // As those of DocumentFieldReader, with ordinals in the segment.
  // REQUIRES: ordinal < the segment's number of documents.
  absl::StatusOr<bool> Read(uint64_t ordinal, std::vector<FieldView>& values);
  absl::StatusOr<bool> ReadGroup(uint64_t ordinal, FieldGroup& group);

 private:
  // Null if it is not at hand.
  absl::StatusOr<const FieldPage*> PageOf(uint64_t ordinal);
  absl::StatusOr<const FieldBlock*> BlockOf(const FieldPage::Group& group,
                                            size_t column);
  // Sets `group_` and `blocks_` to those of a document. False: a part is not at
  // hand.
  absl::StatusOr<bool> EnterGroup(uint64_t ordinal);

  const SegmentFields& fields_;
  const std::vector<size_t> columns_;
  const uint32_t key_;
  FieldCache& cache_;
  const PartLoader load_;
  // Group of the document that was read last, and its blocks for `columns_`;
  // null for a column of nulls. Valid in this generation of the cache.
  const FieldPage::Group* group_ = nullptr;
  std::vector<const FieldBlock*> blocks_;
  uint64_t generation_ = 0;
};

// Reads the values of all fields of a segment's documents, one after the other.
// Thread-compatible.
class SegmentFieldValues {
 public:
  // `load` must not return parts that are not at hand. `fields` must outlive
  // this.
  SegmentFieldValues(const SegmentFields& fields, PartLoader load);
  SegmentFieldValues(const SegmentFieldValues&) = delete;
  SegmentFieldValues& operator=(const SegmentFieldValues&) = delete;

  // Returns one value for each column, valid until the next call.
  // Errors: DataLoss; those of `load`.
  absl::StatusOr<absl::Span<const FieldValue>> Read(uint64_t ordinal);

 private:
  FieldCache cache_;
  SegmentFieldReader reader_;
  std::vector<FieldView> found_;
  std::vector<FieldValue> values_;
};

// Reads all values of a segment's documents and compares them with the bounds
// of their groups. `is_removed` is true for documents that a redaction removed.
// `load` must not return parts that are not at hand.
// Errors: DataLoss  a part or a bound is wrong, or a removed document has a
//                   value; those of `load`.
absl::Status CheckSegmentFields(
    const SegmentFields& fields, uint64_t document_count, PartLoader load,
    absl::FunctionRef<bool(uint64_t ordinal)> is_removed);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FIELDS_SEGMENT_FIELD_READER_H_
