// SPDX-License-Identifier: GPL-3.0-or-later
//
// The values of one field in a group of documents (FORMAT.md, "Fields").
#ifndef QUIRE_SERVER_ARCHIVE_FIELDS_FIELD_BLOCK_H_
#define QUIRE_SERVER_ARCHIVE_FIELDS_FIELD_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/filter/field_value.h"
#include "server/archive/format/column.h"

namespace quire {

// Borrows the bytes that it was parsed from. Immutable.
class FieldBlock {
 public:
  // `bytes` are untrusted. REQUIRES: count > 0.
  // Errors: DataLoss  not `count` values of the type.
  static absl::StatusOr<FieldBlock> Parse(ByteView bytes, FieldType type,
                                          bool has_nulls, uint32_t count);

  // REQUIRES: index < the count. A string is valid as long as the bytes.
  FieldView operator[](uint32_t index) const;

  // Calls `visit` with each string that is stored, once; none for other types.
  // Valid as long as the bytes.
  void VisitStrings(absl::FunctionRef<void(ByteView string)> visit) const;

  // Without the bytes.
  uint64_t MemoryBytes() const;

 private:
  FieldBlock(FieldType type, ByteView presence)
      : type_(type), presence_(presence) {}

  // Takes the different strings off the front.
  absl::Status TakeStrings(ByteView& bytes);

  FieldType type_;
  // A bit for each value; empty if none is null.
  ByteView presence_;
  // Bits of booleans.
  ByteView bits_;
  // Added to integers and times.
  uint64_t base_ = 0;
  // Numbers, or indexes of strings.
  std::optional<ColumnView> numbers_;
  ByteView text_;
  // End of each string in `text_`.
  std::vector<uint32_t> ends_;
};

// Encodes the values, of which at least one is not null and all others have the
// type; `has_nulls` if one is. REQUIRES: the strings have less than
// kContainerPartSizeBytesMax / 2 bytes, without repetitions.
std::string EncodeFieldBlock(std::span<const FieldValue> values, FieldType type,
                             bool has_nulls);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FIELDS_FIELD_BLOCK_H_
