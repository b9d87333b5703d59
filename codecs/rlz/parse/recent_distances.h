// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_PARSE_RECENT_DISTANCES_H_
#define QUIRE_CODECS_RLZ_PARSE_RECENT_DISTANCES_H_

#include <array>
#include <cstdint>

namespace quire {

// Distances that a sequence may name by a number from 1 to 3 ("repeat offsets",
// RFC 8878, section 3.1.1.5): those of the last three sequences, in order of
// last use. They are valuable because after an edit a copy continues at the
// distance of the one before it.
struct RecentDistances {
  // Initial values of a frame.
  std::array<uint32_t, 3> distances = {1, 4, 8};

  // Returns the distance of number 1 to 3. Right after a copy (literal_run ==
  // 0), where the last distance itself would be useless, the numbers differ.
  uint32_t Get(uint32_t number, bool after_copy) const {
    if (!after_copy) {
      return distances[number - 1];
    }
    return number == 3 ? distances[0] - 1 : distances[number];
  }

  // Returns 1 to 3, or 0 if no number stands for `distance`.
  uint32_t NumberOf(uint32_t distance, bool after_copy) const {
    for (uint32_t number = 1; number <= 3; ++number) {
      if (Get(number, after_copy) == distance) {
        return number;
      }
    }
    return 0;
  }

  // Makes `distance` the last.
  void Use(uint32_t distance) {
    if (distance == distances[0]) {
      return;
    }
    if (distance != distances[1]) {
      distances[2] = distances[1];
    }
    distances[1] = distances[0];
    distances[0] = distance;
  }
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PARSE_RECENT_DISTANCES_H_
