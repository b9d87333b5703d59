// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_PARSE_CHEAPEST_STEPS_H_
#define QUIRE_CODECS_RLZ_PARSE_CHEAPEST_STEPS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace quire {

// For each position of a piece of text the cheapest way known to it: what it
// costs, and its last step, a copy or a literal. The table of a shortest-path
// parse: positions are taken in ascending order, and from each the steps that
// begin there are offered; what is known of a position is final once all before
// it were taken. The way is read from the end, by Length() back and back.
//
// Positions and lengths are in bytes, distances as the parse counts them, costs
// in whatever unit the prices have, in all less than 2^31: nothing here checks
// that. Of two steps that cost the same the one offered first stays, so that a
// parse is the same on every machine.
//
// Most of what a parse does is to offer copies of many lengths at once, of
// which few are cheaper than what is known: four are compared at a time,
// without branches, which is why each property is an array of its own.
// Memory is kept from piece to piece. Thread-compatible.
class CheapestSteps {
 public:
  static constexpr int32_t kUnreached = std::numeric_limits<int32_t>::max();
  // How many OfferLengths() compares at a time.
  static constexpr uint32_t kLanes = 4;

  // Forgets all, for a piece of `size` bytes: it has size + 1 positions.
  void Start(uint32_t size) {
    if (costs_.size() < size + 1 + kLanes) {
      costs_.resize(size + 1 + kLanes);
      lengths_.resize(size + 1 + kLanes);
      distances_.resize(size + 1 + kLanes);
    }
    std::fill_n(costs_.begin(), size + 1, kUnreached);
  }

  // Of the way to `position`, from 0 to the piece's size; kUnreached if none
  // was offered.
  int32_t Cost(uint32_t position) const { return costs_[position]; }

  // Of the last step: 0 for a literal. REQUIRES: the position was reached.
  uint32_t Length(uint32_t position) const { return lengths_[position]; }

  // Of the last step. REQUIRES: it is a copy.
  uint32_t Distance(uint32_t position) const { return distances_[position]; }

  // The way to position 0, where the piece begins, costs so much already.
  void SetStart(int32_t cost) {
    costs_[0] = cost;
    lengths_[0] = 0;
  }

  // Each is a step from `from`, after which the whole way costs `cost`; kept if
  // that is less than what is known of where it leads.
  // REQUIRES: that is a position of the piece.
  void OfferLiteral(uint32_t from, int32_t cost) {
    if (cost < costs_[from + 1]) {
      costs_[from + 1] = cost;
      lengths_[from + 1] = 0;
    }
  }

  void OfferCopy(uint32_t from, uint32_t length, uint32_t distance,
                 int32_t cost) {
    const uint32_t to = from + length;
    if (cost < costs_[to]) {
      costs_[to] = cost;
      lengths_[to] = length;
      distances_[to] = distance;
    }
  }

  // Offers copies of all lengths from `first` to `last` that each cost `cost`
  // and the length's price. REQUIRES: from + last is a position of the piece;
  // `prices`, by length, goes on for kLanes - 1 behind `last`.
  void OfferLengths(uint32_t from, uint32_t first, uint32_t last,
                    uint32_t distance, int32_t cost, const int32_t* prices) {
    const Lanes numbers = {0, 1, 2, 3};
    const Lanes distance_lanes = Lanes{} + static_cast<int32_t>(distance);
    for (uint32_t length = first; length <= last; length += kLanes) {
      const Lanes lengths = numbers + static_cast<int32_t>(length);
      const Lanes costs = Load(prices + length) + cost;
      const uint32_t to = from + length;
      const Lanes known = Load(&costs_[to]);
      const Lanes better =
          (costs < known) & (lengths <= static_cast<int32_t>(last));
      Store(&costs_[to], better ? costs : known);
      Store(&lengths_[to], better ? lengths : Load(&lengths_[to]));
      Store(&distances_[to], better ? distance_lanes : Load(&distances_[to]));
    }
  }

 private:
  using Lanes = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));

  static Lanes Load(const void* at) {
    Lanes lanes;
    std::memcpy(&lanes, at, sizeof(lanes));
    return lanes;
  }

  static void Store(void* at, Lanes lanes) {
    std::memcpy(at, &lanes, sizeof(lanes));
  }

  // By position; kLanes more than are used.
  std::vector<int32_t> costs_;
  std::vector<uint32_t> lengths_;
  std::vector<uint32_t> distances_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PARSE_CHEAPEST_STEPS_H_
