// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_REQUESTS_ZIPF_SAMPLER_H_
#define QUIRE_LOADTEST_REQUESTS_ZIPF_SAMPLER_H_

#include <cstdint>

#include "loadtest/requests/random_stream.h"

namespace quire {

// Draws ranks of a Zipf distribution: rank k of [1, size] with a probability
// proportional to k^-exponent. Exact, without tables, with little more than one
// random number per draw for any size, by rejection-inversion (Hoermann,
// Derflinger: "Rejection-inversion to generate variates from monotone discrete
// distributions", ACM TOMACS 6(3), 1996). The same stream gives the same ranks
// with the same C library. Thread-safe.
class ZipfSampler {
 public:
  static constexpr double kExponentMax = 10;

  // REQUIRES: 0 < size <= 2^50, 0 <= exponent <= kExponentMax.
  ZipfSampler(uint64_t size, double exponent);

  // Returns a rank in [1, size].
  uint64_t Sample(RandomStream& random) const;

 private:
  // x^-exponent, its integral from 1 to x, and the inverse of that.
  double Density(double x) const;
  double Integral(double x) const;
  double IntegralInverse(double area) const;

  const double size_;
  const double exponent_;
  // Bounds of the integral: half a step below rank 1, moved so that rank 1 gets
  // exactly its share, and half a step past the last rank.
  double area_begin_ = 0;
  double area_end_ = 0;
  // Ranks at most this far above their x are always accepted.
  double sure_distance_ = 0;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_REQUESTS_ZIPF_SAMPLER_H_
