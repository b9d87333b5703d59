// SPDX-License-Identifier: Apache-2.0
//
// The gear hash over the last 64 bytes: each byte's part shifts up by one bit
// per later byte. Used for chunking and for sketches.
#ifndef QUIRE_CODECS_REORDER_GEAR_HASH_H_
#define QUIRE_CODECS_REORDER_GEAR_HASH_H_

#include <array>
#include <cstdint>

namespace quire {

// The next word of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
constexpr uint64_t NextRandomWord(uint64_t& state) {
  state += 0x9E3779B97F4A7C15u;
  uint64_t mixed = state;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
  return mixed ^ (mixed >> 31);
}

template <size_t count>
constexpr std::array<uint64_t, count> RandomWords(uint64_t seed) {
  std::array<uint64_t, count> words = {};
  for (uint64_t& word : words) {
    word = NextRandomWord(seed);
  }
  return words;
}

// Added to the hash for each byte. Archives depend on it.
inline constexpr std::array<uint64_t, 256> kGear =
    RandomWords<256>(0x51C1E6EA5u);

inline uint64_t ExtendGearHash(uint64_t hash, uint8_t byte) {
  return (hash << 1) + kGear[byte];
}

}  // namespace quire

#endif  // QUIRE_CODECS_REORDER_GEAR_HASH_H_
