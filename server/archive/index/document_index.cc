// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/document_index.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/column.h"

namespace quire {
namespace {

uint64_t MaxOf(const ColumnView& column) {
  uint64_t result = 0;
  for (uint64_t i = 0; i < column.count(); ++i) {
    result = std::max(result, column[i]);
  }
  return result;
}

PackedVector Pack(const ColumnView& column, uint64_t value_max) {
  PackedVector packed(column.count(), value_max);
  for (uint64_t i = 0; i < column.count(); ++i) {
    packed.Set(i, column[i]);
  }
  return packed;
}

// Strings of a StringColumn between two with a stored offset.
constexpr uint64_t kStringStride = 32;

// A column has fewer bits in RAM, but at least one per value.
uint64_t PackedColumnBytesMax(uint64_t section_size_bytes, uint64_t count) {
  return section_size_bytes + count / 8 + 256;
}

// Reads a length of at most three bytes that TakeVarint() has validated.
uint64_t TakeCheckedSize(const char*& text) {
  uint64_t size = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<uint8_t>(*text++);
    size |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) {
      return size;
    }
  }
}

}  // namespace

absl::StatusOr<StringColumn> StringColumn::Parse(ByteView section,
                                                 uint64_t count) {
  StringColumn column;
  QUIRE_ASSIGN_OR_RETURN(const uint64_t string_count, TakeVarint(section));
  // Each takes one byte or more.
  if (string_count > section.size()) {
    return absl::DataLossError(absl::StrCat(
        string_count, " strings, there are ", section.size(), " bytes"));
  }
  const ByteView strings = section;
  column.begins_ = PackedVector(
      (string_count + kStringStride - 1) / kStringStride, section.size());
  for (uint64_t i = 0; i < string_count; ++i) {
    if (i % kStringStride == 0) {
      column.begins_.Set(i / kStringStride, strings.size() - section.size());
    }
    QUIRE_ASSIGN_OR_RETURN(const uint64_t size, TakeVarint(section));
    if (size > kAttributeSizeBytesMax || size > section.size()) {
      return absl::DataLossError(absl::StrCat(
          "string ", i, " has ", size, " bytes, there are ", section.size()));
    }
    column.size_bytes_max_ = std::max(column.size_bytes_max_, size);
    section = section.subspan(size);
  }
  column.strings_ =
      std::string(AsText(strings.first(strings.size() - section.size())));
  QUIRE_ASSIGN_OR_RETURN(const ColumnView values,
                         ColumnView::Parse(section, count));
  const uint64_t value_max = MaxOf(values);
  if (value_max > string_count) {
    return absl::DataLossError(absl::StrCat("a document has string ", value_max,
                                            " of ", string_count));
  }
  column.values_ = Pack(values, value_max);
  return column;
}

absl::string_view StringColumn::operator[](uint64_t index) const {
  if (strings_.empty()) {
    return "";
  }
  const uint64_t value = values_[index];
  if (value == 0) {
    return "";
  }
  const uint64_t number = value - 1;
  const char* text = strings_.data() + begins_[number / kStringStride];
  uint64_t size = TakeCheckedSize(text);
  for (uint64_t i = number % kStringStride; i > 0; --i) {
    text += size;
    size = TakeCheckedSize(text);
  }
  return {text, size};
}

bool StringColumn::Has(absl::string_view text) const {
  const char* next = strings_.data();
  while (next != strings_.data() + strings_.size()) {
    const uint64_t size = TakeCheckedSize(next);
    if (absl::string_view(next, size) == text) {
      return true;
    }
    next += size;
  }
  return false;
}

uint64_t StringColumn::MemoryBytes() const {
  return strings_.capacity() + begins_.MemoryBytes() + values_.MemoryBytes();
}

uint64_t StringColumn::EstimateBytes(uint64_t section_size_bytes,
                                     uint64_t count) {
  // Each string has one byte or more.
  const uint64_t begins_count = section_size_bytes / kStringStride + 1;
  const auto begin_bits =
      static_cast<uint64_t>(std::bit_width(section_size_bytes));
  return PackedColumnBytesMax(section_size_bytes, count) +
         begins_count * begin_bits / 8 + 256;
}

DocumentIndex::DocumentIndex() {
  EliasFano::Builder starts(1, 0);
  starts.Add(0);
  starts_ = std::move(starts).Build();
}

absl::StatusOr<DocumentIndex> DocumentIndex::Parse(
    const SegmentFooter& footer, const Load& load,
    std::vector<absl::Status>* damages) {
  DocumentIndex index;
  const uint64_t count = footer.document_count;
  if (count == 0) {
    if (footer.size_bytes != 0) {
      return absl::DataLossError("text without documents");
    }
    return index;
  }
  {
    QUIRE_ASSIGN_OR_RETURN(const auto section,
                           load(SectionType::kDocumentSizes));
    QUIRE_RETURN_IF_ERROR(
        InFile("document sizes",
               index.ParseSizes(AsBytes(section.value_or("")), footer)));
  }
  const auto passes = [damages](const absl::Status& status) {
    const bool is_tolerated = damages != nullptr && absl::IsDataLoss(status);
    if (is_tolerated) {
      damages->push_back(status);
    }
    return is_tolerated ? absl::OkStatus() : status;
  };
  // Equality of ids is known only during parsing.
  std::vector<bool> repeats;
  const absl::Status ids = index.ParseIds(footer, load, repeats);
  if (!ids.ok()) {
    index.ids_ = {};
    index.has_damaged_ids_ = true;
    repeats.clear();
  }
  QUIRE_RETURN_IF_ERROR(passes(ids));
  for (const SectionType type :
       {SectionType::kCaptureTimes, SectionType::kMediaTypes,
        SectionType::kRecordTypes}) {
    const absl::Status status = index.ParseAttribute(type, count, load);
    index.has_damaged_record_types_ |=
        type == SectionType::kRecordTypes && !status.ok();
    QUIRE_RETURN_IF_ERROR(passes(status));
  }
  index.capture_order_ = CaptureOrder(index, repeats);
  return index;
}

absl::Status DocumentIndex::ParseIds(const SegmentFooter& footer,
                                     const Load& load,
                                     std::vector<bool>& repeats) {
  QUIRE_ASSIGN_OR_RETURN(const auto ids, load(SectionType::kDocumentIds));
  QUIRE_ASSIGN_OR_RETURN(const auto order, load(SectionType::kDocumentOrder));
  QUIRE_ASSIGN_OR_RETURN(const auto runs, load(SectionType::kIdRuns));
  IdIndex::Sections sections;
  sections.ids = AsBytes(ids.has_value() ? absl::string_view(*ids) : "");
  if (order.has_value()) {
    sections.order = AsBytes(*order);
  }
  if (runs.has_value()) {
    sections.runs = AsBytes(*runs);
  }
  QUIRE_ASSIGN_OR_RETURN(
      ids_, IdIndex::Parse(sections,
                           {.document_count = footer.document_count,
                            .derived_id_count = footer.derived_id_count,
                            .id_size_bytes = footer.id_size_bytes},
                           repeats));
  return absl::OkStatus();
}

absl::Status DocumentIndex::ParseAttribute(SectionType type, uint64_t count,
                                           const Load& load) {
  QUIRE_ASSIGN_OR_RETURN(const auto section, load(type));
  if (!section.has_value()) {
    return absl::OkStatus();
  }
  if (type == SectionType::kCaptureTimes) {
    return InFile("capture times", ParseCaptureTimes(AsBytes(*section), count));
  }
  const bool is_media = type == SectionType::kMediaTypes;
  auto strings = StringColumn::Parse(AsBytes(*section), count);
  QUIRE_RETURN_IF_ERROR(
      InFile(is_media ? "media types" : "record types", strings.status()));
  (is_media ? media_types_ : record_types_) = *std::move(strings);
  return absl::OkStatus();
}

absl::Status DocumentIndex::ParseSizes(ByteView section,
                                       const SegmentFooter& footer) {
  const uint64_t count = footer.document_count;
  QUIRE_ASSIGN_OR_RETURN(const ColumnView sizes,
                         ColumnView::Parse(section, count));
  EliasFano::Builder starts(count + 1, footer.size_bytes + count);
  uint64_t start = 0;
  for (uint64_t i = 0; i < count; ++i) {
    starts.Add(start + i);
    if (sizes[i] > footer.size_bytes - start) {
      return absl::DataLossError(absl::StrCat("document ", i,
                                              " ends past the segment's ",
                                              footer.size_bytes, " bytes"));
    }
    start += sizes[i];
  }
  if (start != footer.size_bytes) {
    return absl::DataLossError(absl::StrCat(
        "documents have ", start, " bytes, expected ", footer.size_bytes));
  }
  starts.Add(start + count);
  starts_ = std::move(starts).Build();
  return absl::OkStatus();
}

absl::Status DocumentIndex::ParseCaptureTimes(ByteView section,
                                              uint64_t count) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t first, TakeVarint(section));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t unit, TakeVarint(section));
  QUIRE_ASSIGN_OR_RETURN(const ColumnView values,
                         ColumnView::Parse(section, count));
  first_capture_time_ms_ = UnZigZag(first);
  constexpr auto kMax = static_cast<uint64_t>(kCaptureTimeMsMax);
  if (first_capture_time_ms_ > kCaptureTimeMsMax ||
      first_capture_time_ms_ < -kCaptureTimeMsMax || unit == 0 ||
      unit > 2 * kMax) {
    return absl::DataLossError(
        absl::StrCat("first time ", first_capture_time_ms_, ", unit ", unit));
  }
  const auto span_max =
      static_cast<uint64_t>(kCaptureTimeMsMax - first_capture_time_ms_);
  const uint64_t value_max = MaxOf(values);
  if (value_max > 0 && value_max - 1 > span_max / unit) {
    return absl::DataLossError(
        absl::StrCat("a time ", value_max - 1, " units after the first"));
  }
  capture_time_unit_ms_ = static_cast<int64_t>(unit);
  capture_times_ = Pack(values, value_max);
  return absl::OkStatus();
}

LogicalRange DocumentIndex::Range(uint64_t ordinal) const {
  const uint64_t start = starts_[ordinal] - ordinal;
  const uint64_t end = starts_[ordinal + 1] - (ordinal + 1);
  return {{start}, end - start};
}

std::optional<int64_t> DocumentIndex::CaptureTimeMs(uint64_t ordinal) const {
  if (capture_times_.size() == 0) {
    return std::nullopt;
  }
  const auto value = static_cast<int64_t>(capture_times_[ordinal]);
  return value == 0 ? std::nullopt
                    : std::optional(first_capture_time_ms_ +
                                    (value - 1) * capture_time_unit_ms_);
}

Document DocumentIndex::Describe(uint64_t ordinal) const {
  Document document;
  document.range = Range(ordinal);
  document.capture_time_ms = CaptureTimeMs(ordinal);
  document.media_type = std::string(media_types_[ordinal]);
  document.record_type = std::string(record_types_[ordinal]);
  return document;
}

std::string DocumentIndex::Id(uint64_t ordinal) const {
  return ids_.size() == 0 ? "" : ids_.Get(ids_.RankOf(ordinal));
}

uint64_t DocumentIndex::DescriptionSizeBytesMax() const {
  return ids_.id_size_bytes_max() + media_types_.SizeBytesMax() +
         record_types_.SizeBytesMax();
}

uint64_t DocumentIndex::RankAbove(absl::string_view id, uint64_t ordinal,
                                  uint64_t first_ordinal) const {
  IdIndex::Ranks ranks = ids_.Find(id);
  while (ranks.begin < ranks.end) {
    const uint64_t middle = ranks.begin + ranks.count() / 2;
    if (first_ordinal + OrdinalAtRank(middle) <= ordinal) {
      ranks.begin = middle + 1;
    } else {
      ranks.end = middle;
    }
  }
  return ranks.begin;
}

uint64_t DocumentIndex::At(uint64_t offset) const {
  // The last document that starts at or before the byte. Of several that start
  // there only the last is not empty. Bisection is used instead of sd_vector's
  // rank, whose time is unbounded if many starts share their upper bits, such
  // as those of thousands of empty documents between two long ones.
  uint64_t low = 0;
  uint64_t high = count() - 1;
  while (low < high) {
    const uint64_t middle = low + (high - low + 1) / 2;
    if (starts_[middle] - middle <= offset) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

uint64_t DocumentIndex::EstimateTimesBytes(uint64_t section_size_bytes,
                                           uint64_t count) {
  return PackedColumnBytesMax(section_size_bytes, count);
}

void DocumentIndex::AddMemory(ArchiveMemory& memory) const {
  memory.document_starts_bytes += starts_.MemoryBytes();
  memory.document_ids_bytes += ids_.MemoryBytes();
  memory.document_attributes_bytes +=
      capture_times_.MemoryBytes() + media_types_.MemoryBytes() +
      record_types_.MemoryBytes() + capture_order_.MemoryBytes();
}

}  // namespace quire
