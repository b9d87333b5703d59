// SPDX-License-Identifier: GPL-3.0-or-later
//
// Archive: look-ups and listings of documents.
#include <algorithm>
#include <iterator>
#include <queue>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "codecs/base/status_macros.h"
#include "server/archive/archive.h"
#include "server/archive/archive_parts.h"
#include "server/archive/format/archive_format.h"

namespace quire {
namespace {

// Returns a predicate over ordinals of the segment that begins with
// `first_ordinal`; empty if there is none over those of the archive.
OrdinalPredicate InSegment(const OrdinalPredicate* predicate,
                           uint64_t first_ordinal) {
  if (predicate == nullptr) {
    return {};
  }
  return [predicate, first_ordinal](uint64_t ordinal) {
    return (*predicate)(first_ordinal + ordinal);
  };
}

}  // namespace

Document Archive::Segment::Describe(uint64_t local_ordinal) const {
  const DocumentIndex& documents = reader().documents();
  Document document = documents.Describe(local_ordinal);
  document.ordinal.value = first_ordinal + local_ordinal;
  document.range.offset.value += start;
  // A removed document has neither attributes nor an id.
  if (documents.has_damaged_record_types() && document.media_type.empty() &&
      !document.capture_time_ms.has_value() &&
      (documents.has_damaged_ids() ? document.ordinal.value < redacted_end
                                   : documents.Id(local_ordinal).empty())) {
    document.record_type = kWithdrawnRecordType;
  }
  return document;
}

void Archive::Segment::VisitMayHave(
    const std::vector<Segment>& segments, absl::string_view id,
    absl::FunctionRef<void(const Segment&)> visit) {
  if (segments.size() <= kUnfilteredSegmentsMax) {
    std::ranges::for_each(segments, visit);
    return;
  }
  const uint64_t hash = IdFilter::Hash(id);
  // The accesses to memory overlap.
  constexpr size_t kPrefetchedCount = 16;
  for (size_t i = 0; i < std::min(kPrefetchedCount, segments.size()); ++i) {
    segments[i].filter->Prefetch(hash);
  }
  for (size_t i = 0; i < segments.size(); ++i) {
    if (i + kPrefetchedCount < segments.size()) {
      segments[i + kPrefetchedCount].filter->Prefetch(hash);
    }
    if (segments[i].filter->MayHave(hash)) {
      visit(segments[i]);
    }
  }
}

IdIndex::Ranks Archive::Segment::Find(absl::string_view id,
                                      uint64_t end) const {
  const DocumentIndex& documents = reader().documents();
  const uint64_t count = CountBelow(end);
  if (count == 0) {
    return {};
  }
  IdIndex::Ranks ranks = documents.ids().Find(id);
  if (count == documents.count()) {
    return ranks;
  }
  // Among equal ids, ordinals ascend.
  uint64_t low = ranks.begin;
  uint64_t high = ranks.end;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (documents.OrdinalAtRank(middle) < count) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  ranks.end = low;
  return ranks;
}

void Archive::Segment::VisitRanks(
    absl::string_view id, uint64_t end,
    absl::FunctionRef<void(IdIndex::Ranks)> visit) const {
  IdIndex::Ranks ranks = Find(id, end);
  if (CountBelow(end) == reader().documents().count()) {
    visit(ranks);
    return;
  }
  while (ranks.begin < ranks.end) {
    IdIndex::Ranks part = ranks;
    part.end = std::min(ranks.end, ranks.begin + CaptureOrder::kScannedMax);
    visit(part);
    ranks.begin = part.end;
  }
}

const Archive::Segment& Archive::SegmentOfDocument(uint64_t ordinal) const {
  const auto after = std::upper_bound(
      segments_.begin(), segments_.end(), ordinal,
      [](uint64_t value, const Segment& s) { return value < s.first_ordinal; });
  // If several segments begin with the same ordinal, only the last has
  // documents.
  return *std::prev(after);
}

Archive::DocumentsOfSegment Archive::SegmentAt(DocumentOrdinal ordinal) const {
  const Segment& segment = SegmentOfDocument(ordinal.value);
  return {.segment_index = static_cast<uint32_t>(&segment - segments_.data()),
          .first_ordinal = segment.first_ordinal,
          .document_count = segment.reader().documents().count()};
}

absl::Status Archive::CheckOrdinal(DocumentOrdinal ordinal) const {
  if (ordinal.value >= info_.document_count) {
    return absl::OutOfRangeError(
        absl::StrCat("document ", ordinal.value, " of an archive of ",
                     info_.document_count, " documents"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Document> Archive::GetDocument(DocumentOrdinal ordinal) const {
  QUIRE_RETURN_IF_ERROR(CheckOrdinal(ordinal));
  const Segment& segment = SegmentOfDocument(ordinal.value);
  const uint64_t local = ordinal.value - segment.first_ordinal;
  Document document = segment.Describe(local);
  document.id = segment.reader().documents().Id(local);
  return document;
}

absl::StatusOr<LogicalRange> Archive::GetDocumentRange(
    DocumentOrdinal ordinal) const {
  QUIRE_RETURN_IF_ERROR(CheckOrdinal(ordinal));
  const Segment& segment = SegmentOfDocument(ordinal.value);
  LogicalRange range =
      segment.reader().documents().Range(ordinal.value - segment.first_ordinal);
  range.offset.value += segment.start;
  return range;
}

bool Archive::IsRedacted(DocumentOrdinal ordinal) const {
  const Segment& segment = SegmentOfDocument(ordinal.value);
  const DocumentIndex& documents = segment.reader().documents();
  const uint64_t local = ordinal.value - segment.first_ordinal;
  if (documents.RecordType(local) != kWithdrawnRecordType &&
      !documents.has_damaged_record_types()) {
    return false;
  }
  Document document = segment.Describe(local);
  document.id = documents.Id(local);
  return quire::IsRedacted(document);
}

absl::StatusOr<std::vector<DocumentOrdinal>> Archive::FindDocuments(
    absl::string_view id) const {
  std::vector<DocumentOrdinal> found;
  Segment::VisitMayHave(segments_, id, [&](const Segment& segment) {
    const DocumentIndex& documents = segment.reader().documents();
    const IdIndex::Ranks ranks = documents.ids().Find(id);
    for (uint64_t rank = ranks.begin; rank < ranks.end; ++rank) {
      found.push_back({segment.first_ordinal + documents.OrdinalAtRank(rank)});
    }
  });
  if (found.empty()) {
    return absl::NotFoundError(
        absl::StrCat("there is no document \"", id, "\""));
  }
  return found;
}

Archive::FoundDocument Archive::FindDocument(absl::string_view id,
                                             std::optional<uint64_t> occurrence,
                                             uint64_t end) const {
  FoundDocument found;
  Segment::VisitMayHave(segments_, id, [&](const Segment& segment) {
    const DocumentIndex& documents = segment.reader().documents();
    const IdIndex::Ranks ranks = segment.Find(id, end);
    // An occurrence in an earlier segment wraps to a rank far above the number
    // of documents.
    const uint64_t count = found.count + ranks.count();
    const uint64_t rank = ranks.end - (count - occurrence.value_or(count - 1));
    if (rank - ranks.begin < ranks.count()) {
      found.ordinal = {segment.first_ordinal + documents.OrdinalAtRank(rank)};
    }
    found.count = count;
  });
  return found;
}

Archive::FoundDocument Archive::FindCapture(absl::string_view id,
                                            const DocumentSelection& selection,
                                            uint64_t end) const {
  FoundDocument found;
  std::optional<Capture> best;
  Segment::VisitMayHave(segments_, id, [&](const Segment& segment) {
    const OrdinalPredicate is_left_out =
        InSegment(selection.is_left_out, segment.first_ordinal);
    DocumentSelection local = selection;
    local.is_left_out = is_left_out ? &is_left_out : nullptr;
    segment.VisitRanks(id, end, [&](IdIndex::Ranks ranks) {
      found.count += ranks.count();
      std::optional<Capture> capture =
          segment.reader().documents().FindCapture(ranks, local);
      if (capture.has_value()) {
        capture->ordinal += segment.first_ordinal;
        if (!best.has_value() || capture->IsBetterThan(*best, selection)) {
          best = capture;
        }
      }
    });
  });
  if (best.has_value()) {
    found.ordinal = {best->ordinal};
  }
  return found;
}

std::vector<std::string> Archive::RecordTypesOf(
    absl::string_view id, size_t count_max, uint64_t end,
    const OrdinalPredicate* is_left_out) const {
  std::vector<std::string> types;
  Segment::VisitMayHave(segments_, id, [&](const Segment& segment) {
    const OrdinalPredicate local =
        InSegment(is_left_out, segment.first_ordinal);
    segment.VisitRanks(id, end, [&](IdIndex::Ranks ranks) {
      segment.reader().documents().AddRecordTypes(
          ranks, count_max, local ? &local : nullptr, types);
    });
  });
  return types;
}

Archive::Occurrence Archive::OccurrenceOf(DocumentOrdinal ordinal,
                                          absl::string_view id,
                                          uint64_t end) const {
  Occurrence occurrence;
  Segment::VisitMayHave(segments_, id, [&](const Segment& segment) {
    const DocumentIndex& documents = segment.reader().documents();
    const IdIndex::Ranks ranks = segment.Find(id, end);
    occurrence.count += ranks.count();
    // Among equal ids, ordinals ascend.
    uint64_t low = ranks.begin;
    uint64_t high = ranks.end;
    while (low < high) {
      const uint64_t middle = low + (high - low) / 2;
      if (segment.first_ordinal + documents.OrdinalAtRank(middle) <
          ordinal.value) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    occurrence.number += low - ranks.begin;
  });
  return occurrence;
}

absl::StatusOr<DocumentOrdinal> Archive::DocumentAt(
    LogicalOffset offset) const {
  if (offset.value >= info_.size_bytes) {
    return absl::OutOfRangeError(absl::StrCat("byte ", offset.value,
                                              " of an archive of ",
                                              info_.size_bytes, " bytes"));
  }
  const Segment& segment = segments_[SegmentIndexAt(offset.value)];
  return DocumentOrdinal{
      segment.first_ordinal +
      segment.reader().documents().At(offset.value - segment.start)};
}

// Ids of all segments from the start of a listing on, merged. Borrows the
// segments.
class Archive::ListingWalk {
 public:
  ListingWalk(const std::vector<Segment>& segments, const Listing& listing)
      : prefix_(listing.prefix), end_(listing.end), next_(ComesLater{this}) {
    cursors_.reserve(segments.size());
    for (const Segment& segment : segments) {
      // A segment without documents may come before others.
      if (segment.first_ordinal >= end_) {
        break;
      }
      segments_.push_back(&segment);
      cursors_.emplace_back(IdsOf(segment), FirstRank(segment, listing.after));
      if (!PushIfListed(cursors_.size() - 1)) {
        segments_.pop_back();
        cursors_.pop_back();
      }
    }
  }

  ListingWalk(const ListingWalk&) = delete;
  ListingWalk& operator=(const ListingWalk&) = delete;

  bool at_end() const { return next_.empty(); }

  const ListingCost& cost() const { return cost_; }

  // REQUIRES for the following: !at_end(). Valid until the next change.
  absl::string_view id() const { return cursors_[next_.top()].id(); }

  Document document() const {
    const Segment& segment = *segments_[next_.top()];
    const IdIndex::Cursor& cursor = cursors_[next_.top()];
    Document document = segment.Describe(
        segment.reader().documents().OrdinalAtRank(cursor.rank()));
    document.id = std::string(cursor.id());
    return document;
  }

  void Next() {
    const size_t i = next_.top();
    next_.pop();
    cursors_[i].Next();
    PushIfListed(i);
  }

  // Passes all ids that start with `prefix`. REQUIRES: id() does.
  void Pass(absl::string_view prefix) {
    while (!at_end() && absl::StartsWith(id(), prefix)) {
      const size_t i = next_.top();
      next_.pop();
      const IdIndex& ids = IdsOf(*segments_[i]);
      cursors_[i] = IdIndex::Cursor(ids, RankPast(ids, prefix));
      PushIfListed(i);
    }
  }

 private:
  // All ordinals of a later segment are higher.
  struct ComesLater {
    const ListingWalk* walk;

    bool operator()(size_t a, size_t b) const {
      const int order = walk->cursors_[a].id().compare(walk->cursors_[b].id());
      return order > 0 || (order == 0 && a > b);
    }
  };

  static const IdIndex& IdsOf(const Segment& segment) {
    return segment.reader().documents().ids();
  }

  uint64_t FirstRank(const Segment& segment, const IdCursor* after) {
    ++cost_.search_count;
    const uint64_t rank = IdsOf(segment).LowerBound(prefix_);
    if (after == nullptr) {
      return rank;
    }
    if (after->is_common_prefix) {
      return std::max(rank, RankPast(IdsOf(segment), after->id));
    }
    ++cost_.search_count;
    return std::max(
        rank, segment.reader().documents().RankAbove(after->id, after->ordinal,
                                                     segment.first_ordinal));
  }

  // The rank of the first id after all that start with `prefix`.
  uint64_t RankPast(const IdIndex& ids, absl::string_view prefix) {
    ++cost_.search_count;
    while (absl::ConsumeSuffix(&prefix, "\xFF")) {
    }
    if (prefix.empty()) {
      return ids.size();
    }
    std::string next(prefix);
    next.back() =
        static_cast<char>(static_cast<unsigned char>(next.back()) + 1);
    return ids.LowerBound(next);
  }

  // Returns false after the last id of the segment that is listed.
  bool PushIfListed(size_t i) {
    PassLater(i);
    if (cursors_[i].at_end()) {
      return false;
    }
    ++cost_.id_count;
    if (!absl::StartsWith(cursors_[i].id(), prefix_)) {
      return false;
    }
    next_.push(i);
    return true;
  }

  // Passes documents of the prefix at or above `end_`.
  void PassLater(size_t i) {
    const DocumentIndex& documents = segments_[i]->reader().documents();
    const uint64_t count = segments_[i]->CountBelow(end_);
    IdIndex::Cursor& cursor = cursors_[i];
    while (count < documents.count() && !cursor.at_end() &&
           documents.OrdinalAtRank(cursor.rank()) >= count &&
           absl::StartsWith(cursor.id(), prefix_)) {
      ++cost_.id_count;
      cursor.Next();
    }
  }

  const absl::string_view prefix_;
  const uint64_t end_;
  ListingCost cost_;
  // One for each of segments_.
  std::vector<const Segment*> segments_;
  std::vector<IdIndex::Cursor> cursors_;
  // Indexes of cursors at listed ids, the first id on top.
  std::priority_queue<size_t, std::vector<size_t>, ComesLater> next_;
};

Archive::ListingCost Archive::VisitListing(
    const Listing& listing,
    absl::FunctionRef<bool(const Document&)> visit_document,
    absl::FunctionRef<bool(absl::string_view common_prefix)> visit_prefix)
    const {
  ListingWalk walk(segments_, listing);
  while (!walk.at_end()) {
    const absl::string_view id = walk.id();
    const size_t found =
        listing.delimiter.empty()
            ? absl::string_view::npos
            : id.find(listing.delimiter, listing.prefix.size());
    if (found == absl::string_view::npos) {
      if (!visit_document(walk.document())) {
        break;
      }
      walk.Next();
    } else {
      const std::string common(id.substr(0, found + listing.delimiter.size()));
      if (!visit_prefix(common)) {
        break;
      }
      walk.Pass(common);
    }
  }
  return walk.cost();
}

void Archive::VisitDocuments(
    absl::string_view prefix, const std::optional<IdCursor>& after,
    absl::FunctionRef<bool(const Document&)> visit) const {
  VisitListing({.prefix = prefix, .after = after ? &*after : nullptr}, visit,
               [](absl::string_view) { return true; });
}

}  // namespace quire
