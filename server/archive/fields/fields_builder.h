// SPDX-License-Identifier: GPL-3.0-or-later
//
// Collects the fields of a segment's documents while it is written.
#ifndef QUIRE_SERVER_ARCHIVE_FIELDS_FIELDS_BUILDER_H_
#define QUIRE_SERVER_ARCHIVE_FIELDS_FIELDS_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/filter/field_value.h"
#include "server/archive/container/container_part.h"
#include "server/archive/fields/field_directory.h"

namespace quire {

// "field "NAME" is TYPE in WHERE, and TYPE here; ...", if both have the name
// and another type; OK otherwise. Errors: FailedPrecondition.
absl::Status CheckSameType(const FieldColumn& known, const FieldColumn& added,
                           absl::string_view known_where,
                           absl::string_view added_where);

// Holds the compressed values of all documents, and those of up to 4096
// documents as they are. Thread-compatible.
class FieldsBuilder {
 public:
  // Returns the index of the column, which is a new one or has been added
  // before. Documents so far have no value.
  // Errors: FailedPrecondition  it has another type.
  //         InvalidArgument     too many columns.
  absl::StatusOr<size_t> AddColumn(const FieldColumn& column);

  // Adds the next document, with a value for each of the first columns; it has
  // none of the others. Appends parts to `data`, that of all calls.
  // Errors: InvalidArgument  a value has another type than its column, or is
  //                          too long; Internal.
  absl::Status Add(std::span<const FieldValue> values, ContainerData& data);

  const std::vector<FieldColumn>& columns() const { return columns_; }

  // Appends the last parts and returns the head of the sub-section. The builder
  // is unusable afterwards.
  // REQUIRES: there is a column and a document. Errors: Internal.
  absl::StatusOr<std::string> Build(ContainerData& data);

 private:
  // Values of a column in the current group.
  struct Pending {
    std::vector<FieldValue> values;
    bool has_values = false;
    bool has_nulls = false;
    // Different strings, and their size.
    absl::flat_hash_set<std::string> strings;
    uint64_t string_size_bytes = 0;
  };

  absl::Status EndGroup(ContainerData& data);
  // Adds groups for documents before the first column.
  void CoverEarlier();

  std::vector<FieldColumn> columns_;
  std::vector<Pending> pending_;
  uint64_t document_count_ = 0;
  uint64_t group_first_ = 0;
  std::vector<FieldPage::Group> groups_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FIELDS_FIELDS_BUILDER_H_
