// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/fields/field_block.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "server/archive/fields/field_directory.h"
#include "server/archive/format/archive_format.h"

namespace quire {
namespace {

bool BitAt(ByteView bits, uint32_t index) {
  return (bits[index / 8] >> (index % 8) & 1) != 0;
}

// Takes a bit for each of `count` values; unused bits must be 0.
absl::StatusOr<ByteView> TakeBits(ByteView& in, uint32_t count) {
  const size_t size_bytes = (size_t{count} + 7) / 8;
  if (in.size() < size_bytes ||
      (count % 8 != 0 && in[size_bytes - 1] >> (count % 8) != 0)) {
    return Damaged(absl::StrCat("the bits of ", count, " values are not ",
                                size_bytes, " bytes"));
  }
  const ByteView bits = in.first(size_bytes);
  in = in.subspan(size_bytes);
  return bits;
}

void AppendBits(const std::vector<bool>& bits, std::string& out) {
  std::string bytes((bits.size() + 7) / 8, '\0');
  for (size_t i = 0; i < bits.size(); ++i) {
    if (bits[i]) {
      bytes[i / 8] = static_cast<char>(static_cast<uint8_t>(bytes[i / 8]) |
                                       (1U << (i % 8)));
    }
  }
  out.append(bytes);
}

std::optional<int64_t> IntegerOf(const FieldValue& value) {
  if (const auto* const integer = std::get_if<int64_t>(&value)) {
    return *integer;
  }
  if (const auto* const time = std::get_if<FieldTime>(&value)) {
    return time->us;
  }
  return std::nullopt;
}

void EncodeIntegers(std::span<const FieldValue> values, std::string& out) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const FieldValue& value : values) {
    least = std::min(least, IntegerOf(value).value_or(least));
  }
  std::vector<uint64_t> numbers;
  for (const FieldValue& value : values) {
    numbers.push_back(static_cast<uint64_t>(IntegerOf(value).value_or(least)) -
                      static_cast<uint64_t>(least));
  }
  AppendVarint(ZigZag(least), out);
  AppendColumn(numbers, out);
}

void EncodeStrings(std::span<const FieldValue> values, std::string& out) {
  // In order of first appearance.
  absl::flat_hash_map<absl::string_view, uint64_t> indexes;
  std::vector<uint64_t> sizes;
  std::vector<uint64_t> numbers;
  std::string text;
  for (const FieldValue& value : values) {
    const auto* const string = std::get_if<std::string>(&value);
    if (string == nullptr) {
      numbers.push_back(0);
      continue;
    }
    const auto [entry, is_new] = indexes.try_emplace(*string, sizes.size());
    if (is_new) {
      sizes.push_back(string->size());
      text.append(*string);
    }
    numbers.push_back(entry->second);
  }
  AppendVarint(sizes.size(), out);
  AppendColumn(sizes, out);
  out.append(text);
  AppendColumn(numbers, out);
}

}  // namespace

std::string EncodeFieldBlock(std::span<const FieldValue> values, FieldType type,
                             bool has_nulls) {
  std::string out;
  if (has_nulls) {
    std::vector<bool> presence;
    for (const FieldValue& value : values) {
      presence.push_back(!std::holds_alternative<std::monostate>(value));
    }
    AppendBits(presence, out);
  }
  switch (type) {
    case FieldType::kNull:
      break;
    case FieldType::kString:
      EncodeStrings(values, out);
      break;
    case FieldType::kInteger:
    case FieldType::kTime:
      EncodeIntegers(values, out);
      break;
    case FieldType::kFloat: {
      std::vector<uint64_t> numbers;
      for (const FieldValue& value : values) {
        const auto* const number = std::get_if<double>(&value);
        numbers.push_back(number == nullptr ? 0
                                            : std::bit_cast<uint64_t>(*number));
      }
      AppendColumn(numbers, out);
      break;
    }
    case FieldType::kBoolean: {
      std::vector<bool> bits;
      for (const FieldValue& value : values) {
        const auto* const bit = std::get_if<bool>(&value);
        bits.push_back(bit != nullptr && *bit);
      }
      AppendBits(bits, out);
      break;
    }
  }
  return out;
}

absl::StatusOr<FieldBlock> FieldBlock::Parse(ByteView bytes, FieldType type,
                                             bool has_nulls, uint32_t count) {
  ByteView presence;
  if (has_nulls) {
    QUIRE_ASSIGN_OR_RETURN(presence, TakeBits(bytes, count));
  }
  FieldBlock block(type, presence);
  switch (type) {
    case FieldType::kNull:
      return Damaged("a field has no type");
    case FieldType::kBoolean: {
      QUIRE_ASSIGN_OR_RETURN(block.bits_, TakeBits(bytes, count));
      if (!bytes.empty()) {
        return Damaged(absl::StrCat(bytes.size(), " bytes follow booleans"));
      }
      return block;
    }
    case FieldType::kString:
      QUIRE_RETURN_IF_ERROR(block.TakeStrings(bytes));
      break;
    case FieldType::kInteger:
    case FieldType::kTime: {
      QUIRE_ASSIGN_OR_RETURN(const uint64_t base, TakeVarint(bytes));
      block.base_ = static_cast<uint64_t>(UnZigZag(base));
      break;
    }
    case FieldType::kFloat:
      break;
  }
  QUIRE_ASSIGN_OR_RETURN(const ColumnView numbers,
                         ColumnView::Parse(bytes, count));
  for (uint64_t i = 0; type == FieldType::kString && i < count; ++i) {
    if (numbers[i] >= block.ends_.size()) {
      return Damaged(absl::StrCat("value ", i, " is string ", numbers[i],
                                  " of ", block.ends_.size()));
    }
  }
  block.numbers_ = numbers;
  return block;
}

absl::Status FieldBlock::TakeStrings(ByteView& bytes) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t string_count, TakeVarint(bytes));
  if (string_count > kFieldGroupSizeMax) {
    return Damaged(absl::StrCat(string_count, " different strings, expected ",
                                "at most ", kFieldGroupSizeMax));
  }
  QUIRE_ASSIGN_OR_RETURN(const ColumnView sizes,
                         ColumnView::Take(bytes, string_count));
  uint64_t end = 0;
  ends_.reserve(string_count);
  for (uint64_t i = 0; i < string_count; ++i) {
    if (sizes[i] > kFieldValueSizeBytesMax || sizes[i] > bytes.size() - end) {
      return Damaged(absl::StrCat("string ", i, " has ", sizes[i], " bytes of ",
                                  bytes.size() - end));
    }
    end += sizes[i];
    ends_.push_back(static_cast<uint32_t>(end));
  }
  text_ = bytes.first(end);
  bytes = bytes.subspan(end);
  return absl::OkStatus();
}

FieldView FieldBlock::operator[](uint32_t index) const {
  if (!presence_.empty() && !BitAt(presence_, index)) {
    return {};
  }
  if (type_ == FieldType::kBoolean) {
    return BitAt(bits_, index);
  }
  const uint64_t number = (*numbers_)[index];
  switch (type_) {
    case FieldType::kString: {
      const size_t begin = number == 0 ? 0 : ends_[number - 1];
      return AsText(text_).substr(begin, ends_[number] - begin);
    }
    case FieldType::kInteger:
      return static_cast<int64_t>(base_ + number);
    case FieldType::kTime:
      return FieldTime{static_cast<int64_t>(base_ + number)};
    case FieldType::kFloat:
      return std::bit_cast<double>(number);
    case FieldType::kNull:
    case FieldType::kBoolean:
      break;
  }
  return {};
}

void FieldBlock::VisitStrings(
    absl::FunctionRef<void(ByteView string)> visit) const {
  uint32_t begin = 0;
  for (const uint32_t end : ends_) {
    visit(text_.subspan(begin, end - begin));
    begin = end;
  }
}

uint64_t FieldBlock::MemoryBytes() const {
  return sizeof(FieldBlock) + ends_.capacity() * sizeof(uint32_t);
}

}  // namespace quire
