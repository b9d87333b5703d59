// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/capture_order.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "server/archive/index/document_index.h"

namespace quire {
namespace {

constexpr uint64_t kFixedBytes = 256;

bool Contains(absl::Span<const absl::string_view> types,
              absl::string_view type) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

bool IsLeftOut(const OrdinalPredicate* is_left_out, uint64_t ordinal) {
  return is_left_out != nullptr && (*is_left_out)(ordinal);
}

Capture CaptureOf(const DocumentIndex& index, uint64_t ordinal) {
  return {.ordinal = ordinal,
          .time_ms =
              index.CaptureTimeMs(ordinal).value_or(Capture::kNoCaptureTimeMs)};
}

// Calls `visit` with the ranks of each id of more than kScannedMax documents.
// Runs have other ids only.
template <typename Visit>
void VisitLargeGroups(const IdIndex& ids, const std::vector<bool>& repeats,
                      Visit visit) {
  for (uint64_t begin = 0; begin < repeats.size();) {
    uint64_t end = begin + 1;
    while (end < repeats.size() && repeats[end]) {
      ++end;
    }
    if (end - begin > CaptureOrder::kScannedMax) {
      const uint64_t first_rank = ids.RankOfEntry(begin);
      visit(IdIndex::Ranks{first_rank, first_rank + (end - begin)});
    }
    begin = end;
  }
}

}  // namespace

bool Capture::IsBetterThan(const Capture& other,
                           const DocumentSelection& selection) const {
  const bool is_later = time_ms > selection.at_time_ms;
  const bool other_is_later = other.time_ms > selection.at_time_ms;
  if (is_later != other_is_later) {
    return other_is_later;
  }
  if (time_ms != other.time_ms) {
    return (time_ms > other.time_ms) != is_later;
  }
  return ordinal > other.ordinal;
}

class CaptureOrder::Sorted {
 public:
  Sorted(const DocumentIndex& index, const PackedVector& ordinals,
         uint64_t begin, uint64_t count)
      : index_(index), ordinals_(ordinals), begin_(begin), count_(count) {}

  uint64_t count() const { return count_; }

  Capture At(uint64_t place) const {
    return CaptureOf(index_, ordinals_[begin_ + place]);
  }

  absl::string_view TypeAt(uint64_t place) const {
    return index_.RecordType(ordinals_[begin_ + place]);
  }

  // True if there is a document of the type here.
  bool HasType(uint64_t place, absl::string_view type) const {
    return place < count_ && TypeAt(place) == type;
  }

  // Returns the last place below `end` that has the type and is not left out;
  // unset if there is none.
  std::optional<uint64_t> LastBelow(uint64_t end, absl::string_view type,
                                    const OrdinalPredicate* is_left_out) const {
    for (; end > 0 && HasType(end - 1, type); --end) {
      if (!IsLeftOut(is_left_out, ordinals_[begin_ + end - 1])) {
        return end - 1;
      }
    }
    return std::nullopt;
  }

  // The same for the first place from `begin` on.
  std::optional<uint64_t> FirstFrom(uint64_t begin, absl::string_view type,
                                    const OrdinalPredicate* is_left_out) const {
    for (; HasType(begin, type); ++begin) {
      if (!IsLeftOut(is_left_out, ordinals_[begin_ + begin])) {
        return begin;
      }
    }
    return std::nullopt;
  }

  // Number of documents up to (type, time).
  uint64_t CountUpTo(absl::string_view type, int64_t time_ms) const {
    uint64_t low = 0;
    uint64_t high = count_;
    while (low < high) {
      const uint64_t middle = low + (high - low) / 2;
      const int order = TypeAt(middle).compare(type);
      if (order < 0 || (order == 0 && At(middle).time_ms <= time_ms)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

 private:
  const DocumentIndex& index_;
  const PackedVector& ordinals_;
  const uint64_t begin_;
  const uint64_t count_;
};

CaptureOrder::CaptureOrder(const DocumentIndex& index,
                           const std::vector<bool>& repeats) {
  uint64_t count = 0;
  uint64_t group_count = 0;
  VisitLargeGroups(index.ids(), repeats, [&](IdIndex::Ranks ranks) {
    count += ranks.count();
    ++group_count;
  });
  if (count == 0) {
    return;
  }
  groups_.reserve(group_count);
  ordinals_ = PackedVector(count, index.count() - 1);
  uint64_t begin = 0;
  std::vector<std::tuple<absl::string_view, int64_t, uint64_t>> keys;
  VisitLargeGroups(index.ids(), repeats, [&](IdIndex::Ranks ranks) {
    keys.clear();
    for (uint64_t rank = ranks.begin; rank < ranks.end; ++rank) {
      const Capture capture = CaptureOf(index, index.OrdinalAtRank(rank));
      keys.emplace_back(index.RecordType(capture.ordinal), capture.time_ms,
                        capture.ordinal);
    }
    std::sort(keys.begin(), keys.end());
    groups_.push_back({.first_rank = ranks.begin, .begin = begin});
    for (const auto& [type, time_ms, ordinal] : keys) {
      ordinals_.Set(begin++, ordinal);
    }
  });
}

CaptureOrder::Sorted CaptureOrder::SortedOf(const DocumentIndex& index,
                                            IdIndex::Ranks ranks) const {
  const auto group =
      std::lower_bound(groups_.begin(), groups_.end(), ranks.begin,
                       [](const Group& candidate, uint64_t rank) {
                         return candidate.first_rank < rank;
                       });
  return Sorted(index, ordinals_, group->begin, ranks.count());
}

std::optional<Capture> CaptureOrder::Find(
    const DocumentIndex& index, IdIndex::Ranks ranks,
    const DocumentSelection& selection) const {
  std::optional<Capture> best;
  const auto consider = [&](const Capture& capture) {
    if (!best.has_value() || capture.IsBetterThan(*best, selection)) {
      best = capture;
    }
  };
  if (ranks.count() <= kScannedMax) {
    for (uint64_t rank = ranks.begin; rank < ranks.end; ++rank) {
      const uint64_t ordinal = index.OrdinalAtRank(rank);
      if (Contains(selection.record_types, index.RecordType(ordinal)) &&
          !IsLeftOut(selection.is_left_out, ordinal)) {
        consider(CaptureOf(index, ordinal));
      }
    }
    return best;
  }
  const Sorted sorted = SortedOf(index, ranks);
  for (const absl::string_view type : selection.record_types) {
    const uint64_t end = sorted.CountUpTo(type, selection.at_time_ms);
    std::optional<uint64_t> place =
        sorted.LastBelow(end, type, selection.is_left_out);
    if (!place.has_value()) {
      // The oldest of the later ones; of equal times the last.
      place = sorted.FirstFrom(end, type, selection.is_left_out);
      if (place.has_value()) {
        place =
            sorted.LastBelow(sorted.CountUpTo(type, sorted.At(*place).time_ms),
                             type, selection.is_left_out);
      }
    }
    if (place.has_value()) {
      consider(sorted.At(*place));
    }
  }
  return best;
}

void CaptureOrder::AddTypes(const DocumentIndex& index, IdIndex::Ranks ranks,
                            size_t count_max,
                            const OrdinalPredicate* is_left_out,
                            std::vector<std::string>& types) const {
  const auto add = [&](absl::string_view type) {
    if (types.size() < count_max &&
        std::find(types.begin(), types.end(), type) == types.end()) {
      types.emplace_back(type);
    }
  };
  if (ranks.count() <= kScannedMax) {
    for (uint64_t rank = ranks.begin; rank < ranks.end; ++rank) {
      const uint64_t ordinal = index.OrdinalAtRank(rank);
      if (!IsLeftOut(is_left_out, ordinal)) {
        add(index.RecordType(ordinal));
      }
    }
    return;
  }
  const Sorted sorted = SortedOf(index, ranks);
  uint64_t place = 0;
  while (types.size() < count_max && place < sorted.count()) {
    const absl::string_view type = sorted.TypeAt(place);
    if (sorted.FirstFrom(place, type, is_left_out).has_value()) {
      add(type);
    }
    place = sorted.CountUpTo(type, INT64_MAX);
  }
}

uint64_t CaptureOrder::MemoryBytes() const {
  return groups_.capacity() * sizeof(Group) + ordinals_.MemoryBytes();
}

uint64_t CaptureOrder::EstimateBytes(uint64_t count, uint64_t document_count) {
  const auto bits = static_cast<uint64_t>(std::bit_width(document_count));
  return count <= kScannedMax
             ? kFixedBytes
             : count / 8 * bits + bits + count / kScannedMax * sizeof(Group) +
                   kFixedBytes;
}

}  // namespace quire
