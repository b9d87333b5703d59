// SPDX-License-Identifier: Apache-2.0
#include "loadtest/requests/seeded_permutation.h"

#include <algorithm>
#include <bit>

#include "loadtest/requests/random_stream.h"

namespace quire {
namespace {

constexpr uint64_t kRoundCount = 6;

}  // namespace

SeededPermutation::SeededPermutation(uint64_t seed, uint64_t size)
    : seed_(seed),
      size_(size),
      half_bits_(
          std::max(1, (static_cast<int>(std::bit_width(size - 1)) + 1) / 2)) {}

uint64_t SeededPermutation::EncryptOnce(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (uint64_t round = 0; round < kRoundCount; ++round) {
    const uint64_t mixed =
        left ^ (RandomAt(RandomAt(seed_, round), right) & mask);
    left = right;
    right = mixed;
  }
  return (left << half_bits_) | right;
}

uint64_t SeededPermutation::operator()(uint64_t value) const {
  do {
    value = EncryptOnce(value);
  } while (value >= size_);
  return value;
}

}  // namespace quire
