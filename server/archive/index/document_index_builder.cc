// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/document_index_builder.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "server/archive/format/column.h"
#include "server/archive/index/id_section.h"

namespace quire {
namespace {

constexpr size_t kChunkSizeBytes = size_t{1} << 20;
static_assert(kChunkSizeBytes > kDocumentIdSizeBytesMax);
constexpr int64_t kNoCaptureTime = std::numeric_limits<int64_t>::min();

std::string BuildDocumentOrder(const std::vector<uint32_t>& ordinals) {
  std::vector<uint64_t> steps;
  steps.reserve(ordinals.size());
  int64_t expected = 0;
  for (const uint32_t ordinal : ordinals) {
    steps.push_back(ZigZag(int64_t{ordinal} - expected));
    expected = int64_t{ordinal} + 1;
  }
  std::string section;
  AppendColumn(steps, section);
  return section;
}

}  // namespace

void StringColumnBuilder::Set(uint64_t index, absl::string_view value) {
  if (value.empty()) {
    return;
  }
  const auto [entry, is_new] =
      numbers_.try_emplace(std::string(value), strings_.size() + 1);
  if (is_new) {
    strings_.emplace_back(value);
  }
  values_.resize(index, 0);
  values_.push_back(entry->second);
}

absl::Status StringColumnBuilder::Check(absl::string_view value,
                                        absl::string_view what) {
  if (value.size() > kAttributeSizeBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " of a document must be at most ", kAttributeSizeBytesMax,
        " bytes long, got ", value.size()));
  }
  return absl::OkStatus();
}

std::string StringColumnBuilder::Build(uint64_t count) && {
  std::string section;
  AppendVarint(strings_.size(), section);
  for (const std::string& text : strings_) {
    AppendVarint(text.size(), section);
    section.append(text);
  }
  values_.resize(count, 0);
  AppendColumn(values_, section);
  return section;
}

absl::Status DocumentIndexBuilder::Add(const NewDocument& document) {
  if (count() >= kSegmentDocumentCountMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a segment holds at most ", kSegmentDocumentCountMax,
                     " documents: finish it before this one"));
  }
  if (document.id.size() > kDocumentIdSizeBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an id must be at most ", kDocumentIdSizeBytesMax, " bytes long, got ",
        document.id.size(), ": ", QuotedText(document.id, 100)));
  }
  if (document.size_bytes > kLogicalSizeBytesMax - size_bytes_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a segment holds at most ", kLogicalSizeBytesMax, " bytes"));
  }
  QUIRE_RETURN_IF_ERROR(
      StringColumnBuilder::Check(document.media_type, "the media type"));
  QUIRE_RETURN_IF_ERROR(
      StringColumnBuilder::Check(document.record_type, "the record type"));
  const uint64_t ordinal = count();
  if (document.capture_time_ms.has_value()) {
    if (*document.capture_time_ms > kCaptureTimeMsMax ||
        *document.capture_time_ms < -kCaptureTimeMsMax) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a capture time must be at most ", kCaptureTimeMsMax,
          " ms before or after 1970, got ", *document.capture_time_ms));
    }
    capture_times_.resize(ordinal, kNoCaptureTime);
    capture_times_.push_back(*document.capture_time_ms);
  }
  media_types_.Set(ordinal, document.media_type);
  record_types_.Set(ordinal, document.record_type);
  ids_.push_back(Keep(document.id));
  sizes_.push_back(document.size_bytes);
  size_bytes_ += document.size_bytes;
  return absl::OkStatus();
}

absl::string_view DocumentIndexBuilder::Keep(absl::string_view id) {
  if (chunks_.empty() || kChunkSizeBytes - chunk_used_ < id.size()) {
    chunks_.push_back(std::make_unique<char[]>(kChunkSizeBytes));
    chunk_used_ = 0;
  }
  char* const place = chunks_.back().get() + chunk_used_;
  std::copy_n(id.data(), id.size(), place);
  chunk_used_ += id.size();
  return {place, id.size()};
}

std::vector<uint32_t> DocumentIndexBuilder::SortedOrdinals() const {
  if (std::is_sorted(ids_.begin(), ids_.end())) {
    return {};
  }
  std::vector<uint32_t> ordinals(ids_.size());
  std::iota(ordinals.begin(), ordinals.end(), uint32_t{0});
  std::sort(ordinals.begin(), ordinals.end(), [this](uint32_t a, uint32_t b) {
    const int order = ids_[a].compare(ids_[b]);
    return order < 0 || (order == 0 && a < b);
  });
  return ordinals;
}

std::string DocumentIndexBuilder::BuildCaptureTimes() {
  capture_times_.resize(count(), kNoCaptureTime);
  int64_t first = std::numeric_limits<int64_t>::max();
  for (const int64_t time : capture_times_) {
    if (time != kNoCaptureTime) {
      first = std::min(first, time);
    }
  }
  // Sources with times in seconds save ten bits.
  uint64_t unit = 0;
  for (const int64_t time : capture_times_) {
    if (time != kNoCaptureTime) {
      unit = std::gcd(unit, static_cast<uint64_t>(time - first));
    }
  }
  unit = std::max<uint64_t>(unit, 1);
  std::vector<uint64_t> values;
  values.reserve(capture_times_.size());
  for (const int64_t time : capture_times_) {
    values.push_back(time == kNoCaptureTime
                         ? 0
                         : static_cast<uint64_t>(time - first) / unit + 1);
  }
  std::string section;
  AppendVarint(ZigZag(first), section);
  AppendVarint(unit, section);
  AppendColumn(values, section);
  return section;
}

absl::Status DocumentIndexBuilder::Build(const Emit& emit,
                                         uint64_t& id_size_bytes) {
  id_size_bytes = 0;
  if (count() == 0) {
    return absl::OkStatus();
  }
  std::string sizes;
  AppendColumn(sizes_, sizes);
  QUIRE_RETURN_IF_ERROR(emit(SectionType::kDocumentSizes, std::move(sizes)));

  const std::vector<uint32_t> ordinals = SortedOrdinals();
  IdSectionBuilder ids;
  for (uint64_t rank = 0; rank < count(); ++rank) {
    ids.Add(ids_[ordinals.empty() ? rank : ordinals[rank]]);
  }
  id_size_bytes = ids.id_size_bytes();
  ids_ = {};
  chunks_.clear();
  QUIRE_RETURN_IF_ERROR(
      emit(SectionType::kDocumentIds, std::move(ids).Build()));

  if (!ordinals.empty()) {
    QUIRE_RETURN_IF_ERROR(
        emit(SectionType::kDocumentOrder, BuildDocumentOrder(ordinals)));
  }
  if (!capture_times_.empty()) {
    QUIRE_RETURN_IF_ERROR(
        emit(SectionType::kCaptureTimes, BuildCaptureTimes()));
  }
  if (!media_types_.empty()) {
    QUIRE_RETURN_IF_ERROR(
        emit(SectionType::kMediaTypes, std::move(media_types_).Build(count())));
  }
  if (!record_types_.empty()) {
    QUIRE_RETURN_IF_ERROR(emit(SectionType::kRecordTypes,
                               std::move(record_types_).Build(count())));
  }
  return absl::OkStatus();
}

}  // namespace quire
