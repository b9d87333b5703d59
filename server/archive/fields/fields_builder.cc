// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/fields/fields_builder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/archive/container/container_part.h"
#include "server/archive/fields/field_block.h"

namespace quire {
namespace {

// A group ends once the strings of a column have this size.
constexpr uint64_t kGroupStringSizeBytes = uint64_t{256} << 10;

bool IsNull(const FieldValue& value) {
  return std::holds_alternative<std::monostate>(value);
}

// At most the text.
std::string LowerBound(const std::string& text) {
  return text.substr(0, kFieldBoundSizeBytesMax);
}

// At least the text; null if there is no short one.
FieldValue UpperBound(const std::string& text) {
  if (text.size() <= kFieldBoundSizeBytesMax) {
    return text;
  }
  std::string bound = text.substr(0, kFieldBoundSizeBytesMax);
  while (!bound.empty() && bound.back() == '\xFF') {
    bound.pop_back();
  }
  if (bound.empty()) {
    return {};
  }
  bound.back() = static_cast<char>(static_cast<uint8_t>(bound.back()) + 1);
  return bound;
}

template <typename T>
bool IsLess(const T& a, const T& b) {
  return a < b;
}

bool IsLess(const FieldTime& a, const FieldTime& b) {
  return a.us < b.us;
}

template <typename T>
bool IsNumberless(const T&) {
  return false;
}

bool IsNumberless(double value) {
  return std::isnan(value);
}

template <typename T>
void SetBounds(const std::vector<FieldValue>& values, FieldPage::Block& block) {
  const T* least = nullptr;
  const T* greatest = nullptr;
  for (const FieldValue& value : values) {
    const T* const typed = std::get_if<T>(&value);
    if (typed == nullptr || IsNumberless(*typed)) {
      continue;
    }
    if (least == nullptr || IsLess(*typed, *least)) {
      least = typed;
    }
    if (greatest == nullptr || IsLess(*greatest, *typed)) {
      greatest = typed;
    }
  }
  if (least == nullptr) {
    return;
  }
  if constexpr (std::is_same_v<T, std::string>) {
    block.least = LowerBound(*least);
    block.greatest = UpperBound(*greatest);
  } else {
    block.least = *least;
    block.greatest = *greatest;
  }
}

void SetBounds(const std::vector<FieldValue>& values, FieldType type,
               FieldPage::Block& block) {
  switch (type) {
    case FieldType::kNull:
      return;
    case FieldType::kString:
      return SetBounds<std::string>(values, block);
    case FieldType::kInteger:
      return SetBounds<int64_t>(values, block);
    case FieldType::kFloat:
      return SetBounds<double>(values, block);
    case FieldType::kBoolean:
      return SetBounds<bool>(values, block);
    case FieldType::kTime:
      return SetBounds<FieldTime>(values, block);
  }
}

}  // namespace

absl::Status CheckSameType(const FieldColumn& known, const FieldColumn& added,
                           absl::string_view known_where,
                           absl::string_view added_where) {
  if (known.name != added.name || known.type == added.type) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("field ", QuotedText(known.name), " is of type ",
                   FieldTypeName(known.type), " in ", known_where, ", and ",
                   FieldTypeName(added.type), " in ", added_where,
                   "; give one of them another name, as in --field NAME=PATH"));
}

absl::StatusOr<size_t> FieldsBuilder::AddColumn(const FieldColumn& column) {
  const auto found =
      std::ranges::find(columns_, column.name, &FieldColumn::name);
  if (found != columns_.end()) {
    QUIRE_RETURN_IF_ERROR(CheckSameType(
        *found, column, "earlier documents of a segment", "later documents"));
    return static_cast<size_t>(found - columns_.begin());
  }
  if (columns_.size() == kFieldCountMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("documents have at most ", kFieldCountMax, " fields, and ",
                     QuotedText(column.name), " is one more"));
  }
  if (columns_.empty()) {
    CoverEarlier();
  }
  for (FieldPage::Group& group : groups_) {
    group.blocks.push_back({.part = std::nullopt, .has_nulls = true});
  }
  Pending pending;
  pending.values.resize(document_count_ - group_first_);
  pending.has_nulls = !pending.values.empty();
  columns_.push_back(column);
  pending_.push_back(std::move(pending));
  return columns_.size() - 1;
}

void FieldsBuilder::CoverEarlier() {
  while (document_count_ - group_first_ >= kFieldGroupSizeMax) {
    groups_.push_back(
        {.first = group_first_, .end = group_first_ + kFieldGroupSizeMax});
    group_first_ += kFieldGroupSizeMax;
  }
}

absl::Status FieldsBuilder::Add(std::span<const FieldValue> values,
                                ContainerData& data) {
  ++document_count_;
  if (columns_.empty() && values.empty()) {
    return absl::OkStatus();
  }
  if (values.size() > columns_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a document has ", values.size(), " fields, expected ",
                     columns_.size()));
  }
  bool is_full = document_count_ - group_first_ == kFieldGroupSizeMax;
  for (size_t i = 0; i < columns_.size(); ++i) {
    Pending& pending = pending_[i];
    if (i >= values.size() || IsNull(values[i])) {
      pending.values.emplace_back();
      pending.has_nulls = true;
      continue;
    }
    if (values[i].index() != static_cast<size_t>(columns_[i].type)) {
      return absl::InvalidArgumentError(
          absl::StrCat("field ", QuotedText(columns_[i].name), " is of type ",
                       FieldTypeName(static_cast<FieldType>(values[i].index())),
                       ", expected ", FieldTypeName(columns_[i].type)));
    }
    if (const auto* const text = std::get_if<std::string>(&values[i])) {
      if (text->size() > kFieldValueSizeBytesMax) {
        return absl::InvalidArgumentError(absl::StrCat(
            "field ", QuotedText(columns_[i].name), " has ", text->size(),
            " bytes, expected at most ", kFieldValueSizeBytesMax));
      }
      if (pending.strings.insert(*text).second) {
        pending.string_size_bytes += text->size();
      }
      is_full |= pending.string_size_bytes >= kGroupStringSizeBytes;
    }
    pending.values.push_back(values[i]);
    pending.has_values = true;
  }
  return is_full ? EndGroup(data) : absl::OkStatus();
}

absl::Status FieldsBuilder::EndGroup(ContainerData& data) {
  FieldPage::Group group = {.first = group_first_, .end = document_count_};
  for (size_t i = 0; i < columns_.size(); ++i) {
    Pending& pending = pending_[i];
    FieldPage::Block block;
    block.has_nulls = pending.has_nulls;
    if (pending.has_values) {
      const std::string raw =
          EncodeFieldBlock(pending.values, columns_[i].type, pending.has_nulls);
      QUIRE_ASSIGN_OR_RETURN(block.part, data.Append(AsBytes(raw)));
      SetBounds(pending.values, columns_[i].type, block);
    }
    group.blocks.push_back(std::move(block));
    pending = Pending();
  }
  groups_.push_back(std::move(group));
  group_first_ = document_count_;
  return absl::OkStatus();
}

absl::StatusOr<std::string> FieldsBuilder::Build(ContainerData& data) {
  if (group_first_ < document_count_) {
    QUIRE_RETURN_IF_ERROR(EndGroup(data));
  }
  const size_t groups_per_page =
      std::max<size_t>(1, kFieldPageBlockCount / columns_.size());
  std::vector<SegmentFields::Page> pages;
  for (size_t first = 0; first < groups_.size(); first += groups_per_page) {
    const size_t end = std::min(first + groups_per_page, groups_.size());
    const std::string raw =
        FieldPage::Encode({groups_.begin() + static_cast<ptrdiff_t>(first),
                           groups_.begin() + static_cast<ptrdiff_t>(end)});
    QUIRE_ASSIGN_OR_RETURN(const ContainerPart part, data.Append(AsBytes(raw)));
    pages.push_back({.end = groups_[end - 1].end, .part = part});
  }
  return SegmentFields(columns_, std::move(pages)).Encode();
}

}  // namespace quire
