// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_REQUESTS_SEEDED_PERMUTATION_H_
#define QUIRE_LOADTEST_REQUESTS_SEEDED_PERMUTATION_H_

#include <cstdint>

namespace quire {

// A pseudorandom permutation of [0, size) without tables: a Feistel network
// over the next even number of bits, repeated until the value is in range
// (Black, Rogaway: "Ciphers with arbitrary finite domains", 2002, section 4,
// cycle walking). Takes at most four walks on average.
// The same on every machine. Thread-safe.
class SeededPermutation {
 public:
  // REQUIRES: size > 0.
  SeededPermutation(uint64_t seed, uint64_t size);

  // REQUIRES: value < size.
  uint64_t operator()(uint64_t value) const;

 private:
  uint64_t EncryptOnce(uint64_t value) const;

  const uint64_t seed_;
  const uint64_t size_;
  int half_bits_ = 1;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_REQUESTS_SEEDED_PERMUTATION_H_
