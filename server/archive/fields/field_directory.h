// SPDX-License-Identifier: GPL-3.0-or-later
//
// The index of a segment's fields (FORMAT.md, "Fields"): the head, which an
// opened segment holds, and pages, which are read when they are needed.
#ifndef QUIRE_SERVER_ARCHIVE_FIELDS_FIELD_DIRECTORY_H_
#define QUIRE_SERVER_ARCHIVE_FIELDS_FIELD_DIRECTORY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/filter/field_value.h"
#include "codecs/filter/filter.h"
#include "server/archive/container/container_part.h"

namespace quire {

inline constexpr size_t kFieldCountMax = 256;
inline constexpr size_t kFieldValueSizeBytesMax = 65535;
// Documents of a group.
inline constexpr uint32_t kFieldGroupSizeMax = 4096;
// Columns of all groups of a page together, unless it has one group.
inline constexpr size_t kFieldPageBlockCount = 1024;
// Strings of bounds are shortened to this.
inline constexpr size_t kFieldBoundSizeBytesMax = 64;

// Fields of a segment, without their values. Immutable.
class SegmentFields {
 public:
  struct Page {
    // Ordinal in the segment past the last of its documents.
    uint64_t end = 0;
    ContainerPart part;
  };

  SegmentFields() = default;

  // REQUIRES: the pages cover the documents of the segment.
  SegmentFields(std::vector<FieldColumn> columns, std::vector<Page> pages)
      : columns_(std::move(columns)), pages_(std::move(pages)) {}

  // `head` is that of the container's sub-section, untrusted.
  // Errors: DataLoss.
  static absl::StatusOr<SegmentFields> Parse(ByteView head,
                                             uint64_t document_count,
                                             uint64_t data_size_bytes);
  std::string Encode() const;

  const std::vector<FieldColumn>& columns() const { return columns_; }

  std::optional<size_t> Find(absl::string_view name) const;

  const std::vector<Page>& pages() const { return pages_; }

  // Index of the page of a document. REQUIRES: it exists.
  size_t PageOf(uint64_t ordinal) const;

  // Ordinal of the first document of a page.
  uint64_t StartOf(size_t page) const {
    return page == 0 ? 0 : pages_[page - 1].end;
  }

  uint64_t data_size_bytes() const { return data_size_bytes_; }

  uint64_t MemoryBytes() const;
  // Upper bound on MemoryBytes() twice, for a section of this size.
  static uint64_t EstimateBytes(uint64_t section_size_bytes);

 private:
  std::vector<FieldColumn> columns_;
  std::vector<Page> pages_;
  uint64_t data_size_bytes_ = 0;
};

// A page of the index. Immutable.
class FieldPage {
 public:
  // Values of one column in one group.
  struct Block {
    // Unset if all values are null.
    std::optional<ContainerPart> part;
    bool has_nulls = false;
    // Null: not bounded.
    FieldValue least = {};
    FieldValue greatest = {};
  };

  struct Group {
    // Ordinals in the segment.
    uint64_t first = 0;
    uint64_t end = 0;
    std::vector<Block> blocks = {};
  };

  // `page` is untrusted; it has the documents from `first` to `end` - 1.
  // Errors: DataLoss.
  static absl::StatusOr<FieldPage> Parse(
      ByteView page, const std::vector<FieldColumn>& columns, uint64_t first,
      uint64_t end, uint64_t data_size_bytes);
  // REQUIRES: the groups have a block for each column.
  static std::string Encode(const std::vector<Group>& groups);

  const std::vector<Group>& groups() const { return groups_; }

  // REQUIRES: the document is in the page.
  const Group& GroupOf(uint64_t ordinal) const;

  uint64_t MemoryBytes() const;

 private:
  std::vector<Group> groups_;
};

// Adds a column of a segment to `columns`, those of the segments before.
// Errors: DataLoss  it has another type there, or is one too many; `columns`
// stay
//                   as they are.
absl::Status JoinColumn(const FieldColumn& column,
                        std::vector<FieldColumn>& columns);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FIELDS_FIELD_DIRECTORY_H_
