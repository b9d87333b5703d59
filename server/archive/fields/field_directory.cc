// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/fields/field_directory.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/endian.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"

namespace quire {
namespace {

// Flags of a block in a page.
constexpr uint8_t kHasValues = 1;
constexpr uint8_t kHasNulls = 2;
constexpr uint8_t kHasLeast = 4;
constexpr uint8_t kHasGreatest = 8;

// An upper bound on the memory of a head per byte of its section: a column of
// one character has 3 bytes.
constexpr uint64_t kMemoryPerByte = 24;
constexpr uint64_t kMemoryMin = 512;

template <typename T>
void AppendInteger(T value, std::string& out) {
  uint8_t bytes[sizeof(T)];
  StoreLittleEndian(value, bytes);
  out.append(reinterpret_cast<const char*>(bytes), sizeof(bytes));
}

void AppendBound(const FieldValue& bound, std::string& out) {
  if (const auto* const text = std::get_if<std::string>(&bound)) {
    AppendInteger(static_cast<uint8_t>(text->size()), out);
    out.append(*text);
  } else if (const auto* const integer = std::get_if<int64_t>(&bound)) {
    AppendInteger(static_cast<uint64_t>(*integer), out);
  } else if (const auto* const number = std::get_if<double>(&bound)) {
    AppendInteger(std::bit_cast<uint64_t>(*number), out);
  } else if (const auto* const bit = std::get_if<bool>(&bound)) {
    AppendInteger(static_cast<uint8_t>(*bit ? 1 : 0), out);
  } else if (const auto* const time = std::get_if<FieldTime>(&bound)) {
    AppendInteger(static_cast<uint64_t>(time->us), out);
  }
}

absl::StatusOr<FieldValue> TakeBound(ByteView& in, FieldType type) {
  if (type == FieldType::kString) {
    QUIRE_ASSIGN_OR_RETURN(const ByteView size, TakeContainerBytes(in, 1));
    if (size[0] > kFieldBoundSizeBytesMax) {
      return Damaged(absl::StrCat("a bound has ", size[0],
                                  " bytes, expected at most ",
                                  kFieldBoundSizeBytesMax));
    }
    QUIRE_ASSIGN_OR_RETURN(const ByteView text,
                           TakeContainerBytes(in, size[0]));
    return FieldValue(std::string(AsText(text)));
  }
  if (type == FieldType::kBoolean) {
    QUIRE_ASSIGN_OR_RETURN(const ByteView bit, TakeContainerBytes(in, 1));
    if (bit[0] > 1) {
      return Damaged(absl::StrCat("a boolean is ", bit[0]));
    }
    return FieldValue(bit[0] == 1);
  }
  QUIRE_ASSIGN_OR_RETURN(const ByteView bytes,
                         TakeContainerBytes(in, sizeof(uint64_t)));
  const auto number = LoadLittleEndian<uint64_t>(bytes.data());
  switch (type) {
    case FieldType::kFloat:
      return FieldValue(std::bit_cast<double>(number));
    case FieldType::kTime:
      return FieldValue(FieldTime{static_cast<int64_t>(number)});
    default:
      return FieldValue(static_cast<int64_t>(number));
  }
}

absl::StatusOr<FieldColumn> TakeColumn(ByteView& in) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t size_bytes, TakeVarint(in));
  if (size_bytes == 0 || size_bytes > kFieldNameSizeBytesMax) {
    return Damaged(absl::StrCat("the name of a field has ", size_bytes,
                                " bytes, expected 1 to ",
                                kFieldNameSizeBytesMax));
  }
  QUIRE_ASSIGN_OR_RETURN(const ByteView name,
                         TakeContainerBytes(in, size_bytes));
  QUIRE_ASSIGN_OR_RETURN(const ByteView type, TakeContainerBytes(in, 1));
  if (type[0] < static_cast<uint8_t>(FieldType::kString) ||
      type[0] > static_cast<uint8_t>(FieldType::kTime)) {
    return absl::FailedPreconditionError(
        absl::StrCat("field ", QuotedText(AsText(name)), " has type ",
                     static_cast<int>(type[0]),
                     ", which this program does not know: use a newer one"));
  }
  return FieldColumn{std::string(AsText(name)),
                     static_cast<FieldType>(type[0])};
}

absl::StatusOr<FieldPage::Block> TakeBlock(ByteView& in, FieldType type,
                                           uint64_t data_size_bytes) {
  QUIRE_ASSIGN_OR_RETURN(const ByteView flag_byte, TakeContainerBytes(in, 1));
  const uint8_t flags = flag_byte[0];
  if (flags > (kHasValues | kHasNulls | kHasLeast | kHasGreatest) ||
      (flags & (kHasValues | kHasNulls)) == 0 ||
      ((flags & kHasValues) == 0 && flags != kHasNulls)) {
    return Damaged(absl::StrCat("flags of a block of a field are ", flags));
  }
  FieldPage::Block block;
  block.has_nulls = (flags & kHasNulls) != 0;
  if ((flags & kHasValues) != 0) {
    QUIRE_ASSIGN_OR_RETURN(block.part, TakePartReference(in, data_size_bytes));
  }
  if ((flags & kHasLeast) != 0) {
    QUIRE_ASSIGN_OR_RETURN(block.least, TakeBound(in, type));
  }
  if ((flags & kHasGreatest) != 0) {
    QUIRE_ASSIGN_OR_RETURN(block.greatest, TakeBound(in, type));
  }
  return block;
}

}  // namespace

absl::StatusOr<SegmentFields> SegmentFields::Parse(ByteView head,
                                                   uint64_t document_count,
                                                   uint64_t data_size_bytes) {
  SegmentFields fields;
  fields.data_size_bytes_ = data_size_bytes;
  QUIRE_ASSIGN_OR_RETURN(const uint64_t column_count, TakeVarint(head));
  if (column_count == 0 || column_count > kFieldCountMax) {
    return Damaged(absl::StrCat("there are ", column_count,
                                " fields, expected 1 to ", kFieldCountMax));
  }
  for (uint64_t i = 0; i < column_count; ++i) {
    QUIRE_ASSIGN_OR_RETURN(FieldColumn column, TakeColumn(head));
    if (fields.Find(column.name).has_value()) {
      return Damaged(
          absl::StrCat("field ", QuotedText(column.name), " occurs twice"));
    }
    fields.columns_.push_back(std::move(column));
  }
  QUIRE_ASSIGN_OR_RETURN(const uint64_t page_count, TakeVarint(head));
  if (page_count > head.size()) {
    return Damaged(
        absl::StrCat(page_count, " pages in ", head.size(), " bytes"));
  }
  uint64_t end = 0;
  for (uint64_t i = 0; i < page_count; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const uint64_t count, TakeVarint(head));
    if (count == 0 || count > document_count - end) {
      return Damaged(absl::StrCat("a page has ", count, " documents of ",
                                  document_count - end));
    }
    end += count;
    QUIRE_ASSIGN_OR_RETURN(const ContainerPart part,
                           TakePartReference(head, data_size_bytes));
    fields.pages_.push_back({.end = end, .part = part});
  }
  if (end != document_count || !head.empty()) {
    return Damaged(absl::StrCat("the fields are those of ", end,
                                " documents, expected ", document_count,
                                ", and ", head.size(), " bytes follow"));
  }
  return fields;
}

std::string SegmentFields::Encode() const {
  std::string head;
  AppendVarint(columns_.size(), head);
  for (const FieldColumn& column : columns_) {
    AppendVarint(column.name.size(), head);
    head.append(column.name);
    head.push_back(static_cast<char>(column.type));
  }
  AppendVarint(pages_.size(), head);
  uint64_t begin = 0;
  for (const Page& page : pages_) {
    AppendVarint(page.end - begin, head);
    AppendPartReference(page.part, head);
    begin = page.end;
  }
  return head;
}

std::optional<size_t> SegmentFields::Find(absl::string_view name) const {
  const auto found = std::ranges::find(columns_, name, &FieldColumn::name);
  return found == columns_.end()
             ? std::nullopt
             : std::optional(static_cast<size_t>(found - columns_.begin()));
}

size_t SegmentFields::PageOf(uint64_t ordinal) const {
  return static_cast<size_t>(
      std::ranges::upper_bound(pages_, ordinal, {}, &Page::end) -
      pages_.begin());
}

uint64_t SegmentFields::MemoryBytes() const {
  uint64_t size_bytes = columns_.capacity() * sizeof(FieldColumn) +
                        pages_.capacity() * sizeof(Page);
  for (const FieldColumn& column : columns_) {
    size_bytes += column.name.capacity();
  }
  return size_bytes;
}

uint64_t SegmentFields::EstimateBytes(uint64_t section_size_bytes) {
  // Capacities are up to twice what is used, and an archive has the columns of
  // its segments once more.
  return kMemoryMin + 4 * kMemoryPerByte * section_size_bytes;
}

absl::StatusOr<FieldPage> FieldPage::Parse(
    ByteView page, const std::vector<FieldColumn>& columns, uint64_t first,
    uint64_t end, uint64_t data_size_bytes) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t group_count, TakeVarint(page));
  if (group_count > page.size()) {
    return Damaged(absl::StrCat(group_count, " groups of documents in ",
                                page.size(), " bytes"));
  }
  FieldPage parsed;
  parsed.groups_.reserve(group_count);
  uint64_t begin = first;
  for (uint64_t i = 0; i < group_count; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const uint64_t count, TakeVarint(page));
    if (count == 0 || count > kFieldGroupSizeMax || count > end - begin) {
      return Damaged(
          absl::StrCat("a group has ", count, " documents of ", end - begin));
    }
    Group group = {.first = begin, .end = begin + count};
    begin += count;
    group.blocks.reserve(columns.size());
    for (const FieldColumn& column : columns) {
      QUIRE_ASSIGN_OR_RETURN(Block block,
                             TakeBlock(page, column.type, data_size_bytes));
      group.blocks.push_back(std::move(block));
    }
    parsed.groups_.push_back(std::move(group));
  }
  if (begin != end || !page.empty()) {
    return Damaged(absl::StrCat("a page has ", begin - first,
                                " documents, expected ", end - first, ", and ",
                                page.size(), " bytes follow"));
  }
  return parsed;
}

std::string FieldPage::Encode(const std::vector<Group>& groups) {
  std::string page;
  AppendVarint(groups.size(), page);
  for (const Group& group : groups) {
    AppendVarint(group.end - group.first, page);
    for (const Block& block : group.blocks) {
      const bool has_least =
          !std::holds_alternative<std::monostate>(block.least);
      const bool has_greatest =
          !std::holds_alternative<std::monostate>(block.greatest);
      page.push_back(static_cast<char>(
          (block.part.has_value() ? kHasValues : 0) |
          (block.has_nulls ? kHasNulls : 0) | (has_least ? kHasLeast : 0) |
          (has_greatest ? kHasGreatest : 0)));
      if (block.part.has_value()) {
        AppendPartReference(*block.part, page);
      }
      AppendBound(block.least, page);
      AppendBound(block.greatest, page);
    }
  }
  return page;
}

const FieldPage::Group& FieldPage::GroupOf(uint64_t ordinal) const {
  return *std::ranges::upper_bound(groups_, ordinal, {}, &Group::end);
}

uint64_t FieldPage::MemoryBytes() const {
  uint64_t size_bytes = sizeof(FieldPage);
  for (const Group& group : groups_) {
    // Short strings are inside their objects.
    size_bytes +=
        sizeof(Group) +
        group.blocks.size() * (sizeof(Block) + 2 * kFieldBoundSizeBytesMax);
  }
  return size_bytes;
}

absl::Status JoinColumn(const FieldColumn& column,
                        std::vector<FieldColumn>& columns) {
  const auto found =
      std::ranges::find(columns, column.name, &FieldColumn::name);
  if (found != columns.end()) {
    return found->type == column.type
               ? absl::OkStatus()
               : Damaged(
                     absl::StrCat("field ", QuotedText(column.name),
                                  " has another type than in other segments: ",
                                  FieldTypeName(column.type), ", and ",
                                  FieldTypeName(found->type), " before"));
  }
  if (columns.size() == kFieldCountMax) {
    return Damaged(absl::StrCat("field ", QuotedText(column.name),
                                " is one too many: there are ", kFieldCountMax,
                                " in other segments"));
  }
  columns.push_back(column);
  return absl::OkStatus();
}

}  // namespace quire
