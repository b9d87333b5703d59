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

// Sequential numbers, for a draw that may take several.
// Thread-compatible.
class RandomStream {
 public:
  explicit RandomStream(uint64_t seed) : seed_(seed) {}

  uint64_t Next() { return RandomAt(seed_, position_++); }

  // Uniform on [0, 1), a multiple of 2^-53.
  double NextFraction() {
    return static_cast<double>(Next() >> 11) * 0x1.0p-53;
  }

 private:
  const uint64_t seed_;
  uint64_t position_ = 0;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_REQUESTS_RANDOM_STREAM_H_
