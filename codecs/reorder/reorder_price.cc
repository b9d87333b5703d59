// SPDX-License-Identifier: Apache-2.0
#include "codecs/reorder/reorder_price.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "codecs/reorder/super_features.h"

namespace quire {
namespace {

// Saving of text next to similar text, relative to identical text. Four times
// as much makes archives no smaller, and reads touch more blocks: similar texts
// mostly share what is in the same block or the dictionary.
constexpr double kSimilarShare = 1.0 / 8;

// Choices for a run of units so far: the last stays, or moves.
enum Choice : uint8_t { kStays, kMoves, kChoiceCount };

struct Path {
  double price = 0;
  // End of its last byte in the stored text.
  uint64_t end = 0;
};

class MoveChooser {
 public:
  MoveChooser(const MovableUnits& units, const ReorderPrice& price)
      : units_(units), price_(price), moves_(units.leaders.size(), false) {}

  // Adds unit `unit`, at its first occurrence.
  void AddUnit(size_t unit) {
    const uint64_t offset = units_.offsets[unit];
    const uint64_t size =
        (unit + 1 < units_.offsets.size() ? units_.offsets[unit + 1]
                                          : units_.text_size_bytes) -
        offset;
    const uint32_t leader = units_.leaders[unit];
    std::array<Path, kChoiceCount> next;
    uint8_t from = 0;
    const std::array<uint64_t, kChoiceCount> places = {offset,
                                                       units_.offsets[leader]};
    for (const Choice choice : {kStays, kMoves}) {
      const Choice before = Best(places[choice]);
      from |= static_cast<uint8_t>(before << choice);
      next[choice] = {PriceBefore(before, places[choice]),
                      places[choice] + size};
    }
    if (leader == unit) {
      next[kMoves].price = kNever;
    } else {
      next[kMoves].price -=
          ReorderPrice::Saved(size, units_.shared_counts[unit]);
    }
    paths_ = next;
    from_.push_back(from);
    unit_count_ = unit + 1;
  }

  // Adds text of earlier units: decides on those since the last such text.
  void AddStored(uint64_t offset, uint64_t size_bytes) {
    Decide(PlaceOf(offset));
    paths_ = {Path{0, PlaceOf(offset) + size_bytes}, Path{kNever, 0}};
  }

  std::vector<bool> Take() && {
    // At the end of the text the cheaper choice wins.
    Decide(paths_[paths_[kMoves].price < paths_[kStays].price].end);
    return std::move(moves_);
  }

 private:
  static constexpr double kNever = 1e300;

  // Offset in the stored text, as far as decided.
  uint64_t PlaceOf(uint64_t offset) const {
    const size_t unit = units_.offsets.CountBelow(offset + 1) - 1;
    return moves_[unit] ? offset - units_.offsets[unit] +
                              units_.offsets[units_.leaders[unit]]
                        : offset;
  }

  double PriceBefore(Choice before, uint64_t place) const {
    return paths_[before].price + price_.OfJump(paths_[before].end, place);
  }

  // The text after the units so far is stored at `place`.
  void Decide(uint64_t place) {
    Choice choice = Best(place);
    for (size_t unit = unit_count_; !from_.empty(); from_.pop_back()) {
      moves_[--unit] = choice == kMoves;
      choice = static_cast<Choice>(from_.back() >> choice & 1);
    }
  }

  // Returns the choice from which the text at `place` is reached most cheaply.
  Choice Best(uint64_t place) const {
    return PriceBefore(kMoves, place) < PriceBefore(kStays, place) ? kMoves
                                                                   : kStays;
  }

  const MovableUnits& units_;
  const ReorderPrice& price_;
  std::vector<bool> moves_;
  std::array<Path, kChoiceCount> paths_ = {Path{0, 0}, Path{kNever, 0}};
  // For each unit since the last text that was already stored: bit c is the
  // choice for the unit before it on the best path to choice c.
  std::vector<uint8_t> from_;
  // Units added.
  size_t unit_count_ = 0;
};

}  // namespace

double ReorderPrice::Saved(uint64_t size_bytes, int shared_count) {
  return static_cast<double>(size_bytes) * kSimilarShare * shared_count /
         kSuperFeatureCount;
}

double ReorderPrice::OfJump(uint64_t from, uint64_t to) const {
  const uint64_t distance = from < to ? to - from : from - to;
  return kJumpPriceBytes *
         std::min(1.0, static_cast<double>(distance) / block_size_bytes);
}

std::vector<bool> ChooseMoves(const MovableUnits& units,
                              const std::vector<StoredRun>& runs,
                              const ReorderPrice& price) {
  MoveChooser chooser(units, price);
  size_t next = 0;
  for (const StoredRun& run : runs) {
    const uint64_t end = run.stored_offset + run.size_bytes;
    const uint64_t new_begin =
        next < units.offsets.size() ? units.offsets[next] : UINT64_MAX;
    if (run.stored_offset < new_begin) {
      chooser.AddStored(run.stored_offset,
                        std::min(end, new_begin) - run.stored_offset);
    }
    while (next < units.offsets.size() && units.offsets[next] < end &&
           units.offsets[next] >= run.stored_offset) {
      chooser.AddUnit(next++);
    }
  }
  return std::move(chooser).Take();
}

}  // namespace quire
