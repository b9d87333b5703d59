// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_TESTING_BASE_NOISE_H_
#define QUIRE_TESTING_BASE_NOISE_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace quire {

// Returns incompressible bytes, the same for the same seed on every machine.
inline std::string Noise(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(random());
  }
  return bytes;
}

}  // namespace quire

#endif  // QUIRE_TESTING_BASE_NOISE_H_
