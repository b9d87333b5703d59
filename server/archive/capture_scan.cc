// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/capture_scan.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/segment_reader.h"

namespace quire {

CaptureIndexing IndexingOf(const Archive& archive, uint64_t document_count) {
  CaptureIndexing indexing;
  for (uint32_t i = 0; i < archive.info().segment_count &&
                       archive.FirstOrdinal(i) < document_count;
       ++i) {
    const SegmentReader& segment = archive.ReaderOf(i);
    const uint64_t capture_count = segment.container().captures.capture_count;
    indexing.capture_count += capture_count;
    indexing.memory_bytes += capture_count == 0 ? 0 : sizeof(SegmentCaptures);
    const DocumentIndex& documents = segment.documents();
    if (capture_count == 0 && (documents.HasRecordType("response") ||
                               documents.HasRecordType("revisit") ||
                               documents.HasRecordType("resource") ||
                               documents.HasRecordType("conversion"))) {
      indexing.unindexed_document_count += segment.documents().count();
    }
  }
  return indexing;
}

absl::StatusOr<uint64_t> StoredCapturesSizeBytes(const Archive& archive) {
  uint64_t size_bytes = 0;
  for (uint32_t i = 0; i < archive.info().segment_count; ++i) {
    const SegmentReader& segment = archive.ReaderOf(i);
    const absl::StatusOr<uint64_t> of_segment = StoredCapturesSizeBytes(
        segment.container().captures, segment.part_loader());
    if (!of_segment.ok()) {
      return InFile(segment.file(), of_segment.status());
    }
    size_bytes += *of_segment;
  }
  return size_bytes;
}

// The captures of one segment, in one direction.
struct CaptureScan::Stream {
  Stream(uint32_t index, uint64_t first, bool is_forward,
         const SegmentCaptures& captures, PartLoader loader,
         CaptureCache& cache)
      : first_ordinal(first),
        forward(is_forward),
        load(std::move(loader)),
        cursor(captures, index, cache, load) {}

  void Take() {
    const SegmentCapture capture = cursor.Get();
    head.place = {.key = std::string(capture.key),
                  .time_ms = capture.time_ms,
                  .ordinal = {first_ordinal + capture.ordinal}};
    head.status = capture.status;
    head.digest = capture.digest;
    head.id_skip_bytes = capture.id_skip_bytes;
    head.url = std::string(capture.url);
  }

  std::tuple<const std::string&, int64_t, uint64_t> order() const {
    return {head.place.key, head.place.time_ms, head.place.ordinal.value};
  }

  const uint64_t first_ordinal;
  const bool forward;
  const PartLoader load;
  CaptureCursor cursor;
  bool is_started = false;
  bool is_ended = false;
  // The capture must be passed before others are taken.
  bool is_taken = false;
  FoundCapture head;
};

CaptureScan::CaptureScan(const Archive& archive, uint64_t document_count,
                         CaptureQuery query, std::optional<CapturePlace> after,
                         ArchivePartLoader load)
    : document_count_(document_count),
      query_(std::move(query)),
      after_(std::move(after)),
      archive_(archive),
      load_(std::move(load)) {
  for (uint32_t i = 0; i < archive.info().segment_count; ++i) {
    if (archive.ReaderOf(i).container().captures.capture_count == 0 ||
        archive.FirstOrdinal(i) >= document_count) {
      continue;
    }
    if (query_.order != CaptureQuery::Order::kNewestFirst) {
      AddStream(i, /*forward=*/true);
    }
    if (query_.order != CaptureQuery::Order::kKey) {
      AddStream(i, /*forward=*/false);
    }
  }
}

CaptureScan::~CaptureScan() = default;

void CaptureScan::AddStream(uint32_t segment_index, bool forward) {
  streams_.push_back(std::make_unique<Stream>(
      segment_index, archive_.FirstOrdinal(segment_index), forward,
      archive_.ReaderOf(segment_index).container().captures,
      SegmentPartLoader(archive_, segment_index, load_), cache_));
}

uint64_t CaptureScan::Distance(int64_t time_ms) const {
  return static_cast<uint64_t>(time_ms < query_.closest_ms
                                   ? query_.closest_ms - time_ms
                                   : time_ms - query_.closest_ms);
}

bool CaptureScan::IsBefore(const Stream& a, const Stream& b) const {
  switch (query_.order) {
    case CaptureQuery::Order::kKey:
      return a.order() < b.order();
    case CaptureQuery::Order::kNewestFirst:
      return b.order() < a.order();
    case CaptureQuery::Order::kClosest:
      break;
  }
  const uint64_t distance_a = Distance(a.head.place.time_ms);
  const uint64_t distance_b = Distance(b.head.place.time_ms);
  if (distance_a != distance_b) {
    return distance_a < distance_b;
  }
  if (a.forward != b.forward) {
    return b.forward;
  }
  return a.forward ? a.order() < b.order() : b.order() < a.order();
}

uint64_t CaptureScan::OrdinalIn(const Stream& stream, uint64_t ordinal) {
  return ordinal - std::min(ordinal, stream.first_ordinal);
}

SegmentCapturePlace CaptureScan::FirstPlace(const Stream& stream) const {
  SegmentCapturePlace place = {.key = query_.range.begin,
                               .time_ms = query_.from_ms};
  const bool is_closest = query_.order == CaptureQuery::Order::kClosest;
  if (is_closest) {
    place.time_ms = std::max(place.time_ms, query_.closest_ms);
  }
  if (!after_.has_value()) {
    return place;
  }
  SegmentCapturePlace next = {
      .key = after_->key,
      .time_ms = after_->time_ms,
      .ordinal = OrdinalIn(stream, after_->ordinal.value + 1)};
  if (is_closest && after_->time_ms < query_.closest_ms) {
    // Those that are as far on this side come next.
    next.time_ms =
        query_.closest_ms + static_cast<int64_t>(Distance(after_->time_ms));
    next.ordinal = 0;
  }
  return std::max(place, next);
}

SegmentCapturePlace CaptureScan::EndPlace(const Stream& stream) const {
  const absl::string_view key = query_.range.begin;
  SegmentCapturePlace place = {
      .key = key, .time_ms = std::min(query_.until_ms, kCaptureTimeMsMax) + 1};
  const bool is_closest = query_.order == CaptureQuery::Order::kClosest;
  if (is_closest) {
    place.time_ms = std::min(place.time_ms, query_.closest_ms);
  }
  if (!after_.has_value()) {
    return place;
  }
  SegmentCapturePlace end = {
      .key = key,
      .time_ms = after_->time_ms,
      .ordinal = OrdinalIn(stream, after_->ordinal.value)};
  if (is_closest && after_->time_ms >= query_.closest_ms) {
    // Those that are as far on this side came before.
    end.time_ms =
        query_.closest_ms - static_cast<int64_t>(Distance(after_->time_ms));
    end.ordinal = 0;
  }
  return std::min(place, end);
}

absl::StatusOr<bool> CaptureScan::Start(Stream& stream) {
  if (stream.forward) {
    return stream.cursor.Seek(FirstPlace(stream));
  }
  QUIRE_ASSIGN_OR_RETURN(const bool is_found,
                         stream.cursor.Seek(EndPlace(stream)));
  return is_found ? stream.cursor.Previous(stream.is_ended)
                  : absl::StatusOr<bool>(false);
}

void CaptureScan::CheckEnd(Stream& stream) const {
  if (!stream.is_ended) {
    stream.is_ended =
        stream.cursor.at_end() || !query_.range.Contains(stream.cursor.Key());
  }
}

absl::StatusOr<bool> CaptureScan::Advance(Stream& stream) {
  return stream.forward ? stream.cursor.Next()
                        : stream.cursor.Previous(stream.is_ended);
}

absl::StatusOr<bool> CaptureScan::PassTimes(Stream& stream) {
  // Only in the order of keys does another key follow.
  const int64_t time_ms = stream.cursor.TimeMs();
  if (stream.forward && time_ms < query_.from_ms) {
    return stream.cursor.Seek(
        {.key = stream.head.place.key, .time_ms = query_.from_ms});
  }
  if (stream.forward && time_ms > query_.until_ms) {
    return stream.cursor.Seek(
        {.key = absl::StrCat(stream.head.place.key, " ")});
  }
  if (!stream.forward && time_ms < query_.from_ms) {
    stream.is_ended = true;
    return true;
  }
  return Advance(stream);
}

bool CaptureScan::IsInQuery(const Stream& stream) const {
  const CapturePlace& place = stream.head.place;
  return place.time_ms >= query_.from_ms && place.time_ms <= query_.until_ms &&
         place.ordinal.value < document_count_;
}

absl::StatusOr<CaptureScan::Step> CaptureScan::Next(FoundCapture& found) {
  bool is_at_hand = true;
  for (const std::unique_ptr<Stream>& stream : streams_) {
    if (stream->is_ended || (stream->is_started && !stream->is_taken)) {
      continue;
    }
    const CapturePlace before = stream->head.place;
    QUIRE_ASSIGN_OR_RETURN(const bool is_moved, !stream->is_started
                                                    ? Start(*stream)
                                                    : PassTimes(*stream));
    if (!is_moved) {
      is_at_hand = false;
      continue;
    }
    CheckEnd(*stream);
    if (!stream->is_ended) {
      stream->Take();
      const std::tuple<const std::string&, int64_t, uint64_t> last = {
          before.key, before.time_ms, before.ordinal.value};
      if (stream->is_started && (stream->forward ? stream->order() <= last
                                                 : last <= stream->order())) {
        return Damaged(absl::StrCat(archive_.path(), ": captures of document ",
                                    stream->head.place.ordinal.value,
                                    " are not in their order"));
      }
    }
    stream->is_started = true;
    stream->is_taken = false;
  }
  if (!is_at_hand) {
    return Step::kNotAtHand;
  }
  Stream* first = nullptr;
  for (const std::unique_ptr<Stream>& stream : streams_) {
    if (!stream->is_ended && (first == nullptr || IsBefore(*stream, *first))) {
      first = stream.get();
    }
  }
  if (first == nullptr) {
    return Step::kEnd;
  }
  first->is_taken = true;
  found = first->head;
  return IsInQuery(*first) ? Step::kFound : Step::kPassed;
}

}  // namespace quire
