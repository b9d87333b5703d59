// SPDX-License-Identifier: Apache-2.0
#include "loadtest/requests/zipf_sampler.h"

#include <algorithm>
#include <cmath>

#include "loadtest/requests/portable_math.h"

namespace quire {

ZipfSampler::ZipfSampler(uint64_t size, double exponent)
    : size_(static_cast<double>(size)), exponent_(exponent) {
  area_begin_ = Integral(1.5) - 1;
  area_end_ = Integral(size_ + 0.5);
  sure_distance_ = 2 - IntegralInverse(Integral(2.5) - Density(2));
}

double ZipfSampler::Density(double x) const {
  return PortableExp(-exponent_ * PortableLog(x));
}

// (x^(1 - exponent) - 1) / (1 - exponent), and log(x) where the exponent is 1;
// written so that it is one function, without loss near there.
double ZipfSampler::Integral(double x) const {
  const double log = PortableLog(x);
  return PortableExpm1Ratio((1 - exponent_) * log) * log;
}

double ZipfSampler::IntegralInverse(double area) const {
  // Rounding may bring the product below -1 where x is very large.
  const double t = std::max((1 - exponent_) * area, -1 + 0x1.0p-53);
  return PortableExp(PortableLog1pRatio(t) * area);
}

// A point under the density's integral is drawn and belongs to the rank next to
// it. The hat over a rank is a little larger than its share; what is over is
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
