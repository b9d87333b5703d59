// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_PARSE_CHEAPEST_STEPS_H_
#define QUIRE_CODECS_RLZ_PARSE_CHEAPEST_STEPS_H_

#include <algorithm>
#include <array>
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
// Optionally also a rival for each position: the cheapest path to it that ends
// with another distance. Text after an edit makes it the better one if it
// continues at that distance. Its cost is never less.
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

  // Number of a path to a position.
  static constexpr uint32_t kCheapest = 0;
  static constexpr uint32_t kRival = 1;

  // Starts a piece of `size` bytes, which has size + 1 positions. `cost` and
  // `distance` are those of the path to position 0, where the piece begins.
  void Start(uint32_t size, int32_t cost, uint32_t distance) {
    for (Paths& paths : paths_) {
      if (paths.costs.size() < size + 1 + kLanes) {
        paths.costs.resize(size + 1 + kLanes);
        paths.steps.resize(size + 1 + kLanes);
        paths.distances.resize(size + 1 + kLanes);
      }
      std::fill_n(paths.costs.begin(), size + 1, kUnreached);
    }
    paths_[kCheapest].costs[0] = cost;
    paths_[kCheapest].steps[0] = 0;
    paths_[kCheapest].distances[0] = distance;
  }

  // Cost of a path to `position`, from 0 to the piece's size; kUnreached if
  // none was offered.
  int32_t Cost(uint32_t position, uint32_t path = kCheapest) const {
    return paths_[path].costs[position];
  }

  // Length of the last step: 0 for a literal. REQUIRES: the position was
  // reached by this path, here and below.
  uint32_t Length(uint32_t position, uint32_t path = kCheapest) const {
    return paths_[path].steps[position] >> 1;
  }

  // The path to the start of the last step that it continues.
  uint32_t Before(uint32_t position, uint32_t path = kCheapest) const {
    return paths_[path].steps[position] & 1;
  }

  // Distance of the last copy.
  uint32_t Distance(uint32_t position, uint32_t path = kCheapest) const {
    return paths_[path].distances[position];
  }

  // Offers a step that continues a path to `from`, after which the whole path
  // costs `cost`; kept if it is cheaper than the known path to its end.
  // `distance` is that of the last copy. kRivals: kept also as rival.
  // REQUIRES: the end is a position of the piece; either all offers of a piece
  // are with kRivals, or none.
  template <bool kRivals>
  void OfferLiteral(uint32_t from, uint32_t path, uint32_t distance,
                    int32_t cost) {
    Offer<kRivals>(from + 1, path, distance, cost);
  }

  template <bool kRivals>
  void OfferCopy(uint32_t from, uint32_t path, uint32_t length,
                 uint32_t distance, int32_t cost) {
    Offer<kRivals>(from + length, length << 1 | path, distance, cost);
  }

  // Offers copies of all lengths from `first` to `last` that each cost `cost`
  // and the price of the length. REQUIRES: from + last is a position of the
  // piece; `prices`, by length, has kLanes - 1 more after `last`.
  template <bool kRivals>
  void OfferLengths(uint32_t from, uint32_t path, uint32_t first, uint32_t last,
                    uint32_t distance, int32_t cost, const int32_t* prices) {
    auto& [best, rival] = paths_;
    const Lanes numbers = {0, 1, 2, 3};
    const Lanes offered_distances = Lanes{} + static_cast<int32_t>(distance);
    for (uint32_t length = first; length <= last; length += kLanes) {
      const Lanes lengths = numbers + static_cast<int32_t>(length);
      const Lanes offered = Load(prices + length) + cost;
      const Lanes steps = lengths * 2 + static_cast<int32_t>(path);
      const Lanes wanted = lengths <= static_cast<int32_t>(last);
      const uint32_t to = from + length;
      const Lanes known = Load(&best.costs[to]);
      const Lanes known_steps = Load(&best.steps[to]);
      const Lanes known_distances = Load(&best.distances[to]);
      const Lanes better = (offered < known) & wanted;
      if constexpr (kRivals) {
        // The loser of the two replaces the rival.
        const Lanes rival_costs = Load(&rival.costs[to]);
        const Lanes replaced = (offered < rival_costs) & wanted &
                               (known_distances != offered_distances);
        Store(&rival.costs[to],
              replaced ? (better ? known : offered) : rival_costs);
        Store(&rival.steps[to], replaced ? (better ? known_steps : steps)
                                         : Load(&rival.steps[to]));
        Store(&rival.distances[to],
              replaced ? (better ? known_distances : offered_distances)
                       : Load(&rival.distances[to]));
      }
      Store(&best.costs[to], better ? offered : known);
      Store(&best.steps[to], better ? steps : known_steps);
      Store(&best.distances[to], better ? offered_distances : known_distances);
    }
  }

 private:
  using Lanes = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));

  // By position; kLanes more than used.
  struct Paths {
    std::vector<int32_t> costs;
    // Twice the length, plus the path that it continues.
    std::vector<uint32_t> steps;
    std::vector<uint32_t> distances;

    void Set(uint32_t to, uint32_t step, uint32_t distance, int32_t cost) {
      costs[to] = cost;
      steps[to] = step;
      distances[to] = distance;
    }
  };

  template <bool kRivals>
  void Offer(uint32_t to, uint32_t step, uint32_t distance, int32_t cost) {
    auto& [best, rival] = paths_;
    const bool differs = kRivals && best.costs[to] != kUnreached &&
                         best.distances[to] != distance;
    if (cost < best.costs[to]) {
      if (differs) {
        rival.Set(to, best.steps[to], best.distances[to], best.costs[to]);
      }
      best.Set(to, step, distance, cost);
    } else if (differs && cost < rival.costs[to]) {
      rival.Set(to, step, distance, cost);
    }
  }

  static Lanes Load(const void* at) {
    Lanes lanes;
    std::memcpy(&lanes, at, sizeof(lanes));
    return lanes;
  }

  static void Store(void* at, Lanes lanes) {
    std::memcpy(at, &lanes, sizeof(lanes));
  }

  std::array<Paths, 2> paths_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PARSE_CHEAPEST_STEPS_H_
