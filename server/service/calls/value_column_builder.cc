// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/calls/value_column_builder.h"

#include <bit>
#include <utility>
#include <variant>

#include "codecs/base/endian.h"

namespace quire {
namespace {

void AppendInteger(uint64_t number, std::string& out) {
  uint8_t bytes[sizeof(number)];
  StoreLittleEndian(number, bytes);
  out.append(reinterpret_cast<const char*>(bytes), sizeof(bytes));
}

}  // namespace

ValueColumnBuilder::ValueColumnBuilder(FieldType type) : type_(type) {
  if (type_ == FieldType::kString) {
    AppendInteger(0, numbers_);
  }
}

void ValueColumnBuilder::AppendBit(bool bit, size_t index, std::string& bits) {
  if (index % 8 == 0) {
    bits.push_back('\0');
  }
  if (bit) {
    bits.back() = static_cast<char>(static_cast<uint8_t>(bits.back()) |
                                    (1U << (index % 8)));
  }
}

void ValueColumnBuilder::NotePresence(bool has_value) {
  if (!has_value && value_count_ == count_) {
    // The first one that is missing.
    for (size_t i = 0; i < count_; ++i) {
      AppendBit(true, i, presence_);
    }
  }
  value_count_ += has_value ? 1 : 0;
  if (value_count_ <= count_) {
    AppendBit(has_value, count_, presence_);
  }
  ++count_;
}

void ValueColumnBuilder::AddNumber(uint64_t number) {
  NotePresence(true);
  AppendInteger(number, numbers_);
}

void ValueColumnBuilder::AddText(absl::string_view text) {
  NotePresence(true);
  text_.append(text.data(), text.size());
  AppendInteger(text_.size(), numbers_);
}

void ValueColumnBuilder::AddNull() {
  if (type_ == FieldType::kBoolean) {
    AppendBit(false, count_, booleans_);
  } else {
    AppendInteger(type_ == FieldType::kString ? text_.size() : 0, numbers_);
  }
  NotePresence(false);
}

void ValueColumnBuilder::Add(const FieldView& value) {
  switch (TypeOf(value)) {
    case FieldType::kNull:
      AddNull();
      break;
    case FieldType::kString:
      AddText(std::get<absl::string_view>(value));
      break;
    case FieldType::kInteger:
      AddNumber(static_cast<uint64_t>(std::get<int64_t>(value)));
      break;
    case FieldType::kFloat:
      AddNumber(std::bit_cast<uint64_t>(std::get<double>(value)));
      break;
    case FieldType::kBoolean:
      AppendBit(std::get<bool>(value), count_, booleans_);
      NotePresence(true);
      break;
    case FieldType::kTime:
      AddNumber(static_cast<uint64_t>(std::get<FieldTime>(value).us));
      break;
  }
}

void ValueColumnBuilder::Finish(v1::ValueColumn& column) {
  if (value_count_ < count_) {
    column.set_presence(std::move(presence_));
  }
  if (type_ == FieldType::kString) {
    column.set_text_offsets(std::move(numbers_));
    column.set_text(std::move(text_));
  } else if (type_ == FieldType::kBoolean) {
    column.set_booleans(std::move(booleans_));
  } else {
    column.set_numbers(std::move(numbers_));
  }
}

}  // namespace quire
