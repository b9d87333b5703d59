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

// For each position of a piece of text the cheapest known path to it: its cost
// and its last step, a copy or a literal. This is the table of a shortest-path
// parse: positions are taken in ascending order, and each offers the steps that
// begin there. A position is final once all before it have been taken. The path
// is read backwards from the end by Length().
//
// Positions and lengths are in bytes, distances in the units of the parse,
// costs in those of the prices and in total less than 2^31, unchecked. Between
// steps of equal cost the first offered wins, so that a parse is the same on
// every machine.
//
// A parse mostly offers copies of many lengths at once, of which few are
// cheaper than known ones. Four are compared at a time without branches, so
// each property has an array. Memory is reused from piece to piece.
// Thread-compatible.
class CheapestSteps {
 public:
  static constexpr int32_t kUnreached = std::numeric_limits<int32_t>::max();
  // Lengths that OfferLengths() compares at a time.
  static constexpr uint32_t kLanes = 4;

  // Starts a piece of `size` bytes, which has size + 1 positions.
  void Start(uint32_t size) {
    if (costs_.size() < size + 1 + kLanes) {
      costs_.resize(size + 1 + kLanes);
      lengths_.resize(size + 1 + kLanes);
      distances_.resize(size + 1 + kLanes);
    }
    std::fill_n(costs_.begin(), size + 1, kUnreached);
  }

  // Cost of the path to `position`, from 0 to the piece's size; kUnreached if
  // none was offered.
  int32_t Cost(uint32_t position) const { return costs_[position]; }

  // Length of the last step: 0 for a literal. REQUIRES: the position was
  // reached.
  uint32_t Length(uint32_t position) const { return lengths_[position]; }

  // Distance of the last step. REQUIRES: it is a copy.
  uint32_t Distance(uint32_t position) const { return distances_[position]; }

  // Sets the cost of the path to position 0, where the piece begins.
  void SetStart(int32_t cost) {
    costs_[0] = cost;
    lengths_[0] = 0;
  }

  // Offers a step from `from` after which the whole path costs `cost`; kept if
  // it is cheaper than the known path to its end.
  // REQUIRES: the end is a position of the piece.
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
  // and the price of the length. REQUIRES: from + last is a position of the
  // piece; `prices`, by length, has kLanes - 1 more after `last`.
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

  // By position; kLanes more than used.
  std::vector<int32_t> costs_;
  std::vector<uint32_t> lengths_;
  std::vector<uint32_t> distances_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PARSE_CHEAPEST_STEPS_H_
