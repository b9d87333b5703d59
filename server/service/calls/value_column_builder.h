// SPDX-License-Identifier: GPL-3.0-or-later
//
// Makes a v1::ValueColumn.
#ifndef QUIRE_SERVER_SERVICE_CALLS_VALUE_COLUMN_BUILDER_H_
#define QUIRE_SERVER_SERVICE_CALLS_VALUE_COLUMN_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

#include "codecs/filter/field_value.h"

namespace quire {

// Takes the values of one column, in order. Thread-compatible.
class ValueColumnBuilder {
 public:
  // Type of all values.
  explicit ValueColumnBuilder(FieldType type);

  // Null, or a value of the type.
  void Add(const FieldView& value);
  // REQUIRES: the type is kInteger or kTime; kString.
  void AddNumber(uint64_t number);
  void AddText(absl::string_view text);
  void AddNull();

  bool has_values() const { return value_count_ > 0; }

  uint64_t size_bytes() const {
    return numbers_.size() + text_.size() + count_ / 4;
  }

  // Moves the values to `column`. The builder is unusable afterwards.
  void Finish(v1::ValueColumn& column);

 private:
  static void AppendBit(bool bit, size_t index, std::string& bits);
  void NotePresence(bool has_value);

  const FieldType type_;
  size_t count_ = 0;
  size_t value_count_ = 0;
  // Made once a value is missing.
  std::string presence_;
  // Numbers, or offsets of strings.
  std::string numbers_;
  std::string booleans_;
  std::string text_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_VALUE_COLUMN_BUILDER_H_
