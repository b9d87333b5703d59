// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/document_index_builder.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/memory/free_memory.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "server/archive/format/column.h"
#include "server/archive/index/id_section.h"

namespace quire {
namespace {

constexpr size_t kChunkSizeBytes = size_t{1} << 20;
static_assert(kChunkSizeBytes > kDocumentIdSizeBytesMax);
// Digits of a number below kDecimalEnd.
constexpr size_t kNumberSizeMax = 18;
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
  QUIRE_RETURN_IF_ERROR(container_.AddDocument(ordinal, document));
  media_types_.Set(ordinal, document.media_type);
  record_types_.Set(ordinal, document.record_type);
  AddId(document.id);
  sizes_.push_back(document.size_bytes);
  size_bytes_ += document.size_bytes;
  return absl::OkStatus();
}

absl::Status DocumentIndexBuilder::AddFieldColumns(
    std::span<const FieldColumn> columns) {
  for (const FieldColumn& column : columns) {
    QUIRE_RETURN_IF_ERROR(container_.fields().AddColumn(column).status());
  }
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

void DocumentIndexBuilder::AddId(absl::string_view id) {
  if (!entries_.empty() && entries_.back().digit_count > 0) {
    Entry& last = entries_.back();
    const uint64_t next = last.first_number + last.count;
    if (next < kDecimalEnd && absl::StartsWith(id, last.prefix()) &&
        ParseDecimal(id.substr(last.prefix().size())) == next) {
      ++last.count;
      return;
    }
    EndRun();
  }
  Entry entry = {.id = Keep(id)};
  // The longest number that the id ends in.
  const size_t size_max = std::min(id.size(), kNumberSizeMax);
  for (size_t size = 1; size <= size_max; ++size) {
    const char digit = id[id.size() - size];
    if (digit < '0' || digit > '9') {
      break;
    }
    if (digit != '0' || size == 1) {
      entry.digit_count = static_cast<uint32_t>(size);
    }
  }
  entry.first_number =
      ParseDecimal(id.substr(id.size() - entry.digit_count)).value_or(0);
  entries_.push_back(entry);
}

void DocumentIndexBuilder::EndRun() {
  if (entries_.empty() || entries_.back().count == 1) {
    return;
  }
  Entry& last = entries_.back();
  if (last.is_run()) {
    const std::string lowest = absl::StrCat(last.numbers().NumberAt(0));
    last.id = Keep(absl::StrCat(last.prefix(), lowest));
    last.digit_count = static_cast<uint32_t>(lowest.size());
    return;
  }
  const Entry short_run = last;
  entries_.pop_back();
  AppendIds(short_run, entries_);
}

void DocumentIndexBuilder::AppendIds(const Entry& run,
                                     std::vector<Entry>& entries) {
  for (uint64_t i = 0; i < run.count; ++i) {
    entries.push_back(
        {.id = Keep(absl::StrCat(run.prefix(), run.first_number + i))});
  }
}

void DocumentIndexBuilder::SplitRuns(const std::vector<bool>& split) {
  std::vector<Entry> entries;
  entries.reserve(entries_.size());
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (split[i] && entries_[i].is_run()) {
      AppendIds(entries_[i], entries);
    } else {
      entries.push_back(entries_[i]);
    }
  }
  entries_ = std::move(entries);
}

void DocumentIndexBuilder::SplitMixedRuns() {
  std::vector<bool> split(entries_.size());
  bool has_split = false;
  const std::vector<uint32_t> sorted = SortedEntries();
  // The highest id so far, and its entry.
  std::string highest;
  size_t highest_entry = 0;
  for (size_t rank = 0; rank < entries_.size(); ++rank) {
    const size_t i = sorted.empty() ? rank : sorted[rank];
    const Entry& entry = entries_[i];
    if (rank > 0 && entry.id <= highest) {
      split[i] = true;
      split[highest_entry] = true;
      has_split = true;
    }
    std::string last =
        entry.is_run() ? absl::StrCat(entry.prefix(),
                                      entry.numbers().NumberAt(entry.count - 1))
                       : std::string(entry.id);
    if (rank == 0 || last > highest) {
      highest = std::move(last);
      highest_entry = i;
    }
  }
  if (has_split) {
    SplitRuns(split);
  }
}

std::vector<uint32_t> DocumentIndexBuilder::SortedEntries() const {
  if (std::is_sorted(
          entries_.begin(), entries_.end(),
          [](const Entry& a, const Entry& b) { return a.id < b.id; })) {
    return {};
  }
  std::vector<uint32_t> sorted(entries_.size());
  std::iota(sorted.begin(), sorted.end(), uint32_t{0});
  std::sort(sorted.begin(), sorted.end(), [this](uint32_t a, uint32_t b) {
    const int order = entries_[a].id.compare(entries_[b].id);
    return order < 0 || (order == 0 && a < b);
  });
  return sorted;
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

  EndRun();
  const bool has_runs =
      std::any_of(entries_.begin(), entries_.end(),
                  [](const Entry& entry) { return entry.is_run(); });
  if (has_runs && size_bytes_ == 0) {
    // Readers take no computed ids of documents that take no space.
    SplitRuns(std::vector<bool>(entries_.size(), true));
  } else if (has_runs) {
    SplitMixedRuns();
  }
  const std::vector<uint32_t> ordinals = SortedEntries();
  IdSectionBuilder ids;
  for (uint64_t rank = 0; rank < entries_.size(); ++rank) {
    const Entry& entry = entries_[ordinals.empty() ? rank : ordinals[rank]];
    ids.Add(entry.id);
    if (entry.is_run()) {
      id_runs_.push_back({.entry = rank, .numbers = entry.numbers()});
      derived_id_count_ += entry.count - 1;
    }
  }
  id_size_bytes = ids.id_size_bytes();
  FreeMemory(entries_);
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
