// SPDX-License-Identifier: Apache-2.0
//
// Random numbers that are the same on every machine, with random access:
// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
// generators", OOPSLA 2014).
#ifndef QUIRE_LOADTEST_REQUESTS_RANDOM_STREAM_H_
#define QUIRE_LOADTEST_REQUESTS_RANDOM_STREAM_H_

#include <cstdint>

namespace quire {

// Returns number `position` of the stream of `seed`.
inline uint64_t RandomAt(uint64_t seed, uint64_t position) {
  uint64_t z = seed + (position + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace quire

#endif  // QUIRE_LOADTEST_REQUESTS_RANDOM_STREAM_H_
