// SPDX-License-Identifier: Apache-2.0
#include "loadtest/requests/zipf_sampler.h"

#include <algorithm>
#include <cmath>

namespace quire {
namespace {

// Returns (e^x - 1) / x, without loss near 0.
double Expm1Ratio(double x) {
  return x == 0 ? 1 : std::expm1(x) / x;
}

// Returns log(1 + x) / x, without loss near 0. REQUIRES: x > -1.
double Log1pRatio(double x) {
  return x == 0 ? 1 : std::log1p(x) / x;
}

}  // namespace

ZipfSampler::ZipfSampler(uint64_t size, double exponent)
    : size_(static_cast<double>(size)), exponent_(exponent) {
  area_begin_ = Integral(1.5) - 1;
  area_end_ = Integral(size_ + 0.5);
  sure_distance_ = 2 - IntegralInverse(Integral(2.5) - Density(2));
}

double ZipfSampler::Density(double x) const {
  return std::pow(x, -exponent_);
}

// Returns (x^(1 - exponent) - 1) / (1 - exponent), or log(x) if the exponent is
// 1, as one function without loss near there.
double ZipfSampler::Integral(double x) const {
  const double log = std::log(x);
  return Expm1Ratio((1 - exponent_) * log) * log;
}

double ZipfSampler::IntegralInverse(double area) const {
  // Rounding may make the product less than -1 for very large x.
  const double t = std::max((1 - exponent_) * area, -1 + 0x1.0p-53);
  return std::exp(Log1pRatio(t) * area);
}

// Draws a point under the density's integral and takes the nearest rank. The
// hat over a rank is a little larger than its share; points in the excess are
// drawn again.
uint64_t ZipfSampler::Sample(RandomStream& random) const {
  for (;;) {
    const double area =
        area_end_ + random.NextFraction() * (area_begin_ - area_end_);
    const double x = IntegralInverse(area);
    const double rank = std::clamp(std::floor(x + 0.5), 1.0, size_);
    if (rank - x <= sure_distance_ ||
        area >= Integral(rank + 0.5) - Density(rank)) {
      return static_cast<uint64_t>(rank);
    }
  }
}

}  // namespace quire
