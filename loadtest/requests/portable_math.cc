// SPDX-License-Identifier: Apache-2.0
#include "loadtest/requests/portable_math.h"

#include <cmath>

namespace quire {
namespace {

// ln 2 in two parts, the first with zeros at its end, so that small multiples
// of it are exact.
constexpr double kLn2High = 0x1.62e42fee00000p-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1;

// The sum over i of square^i / (2 i + 1): atanh(s) / s for square = s * s.
// REQUIRES: square <= 1/9.
double AtanhSeries(double square) {
  double sum = 0;
  for (int i = 17; i >= 0; --i) {
    sum = sum * square + 1.0 / (2 * i + 1);
  }
  return sum;
}

}  // namespace

double PortableLog(double x) {
  // x = mantissa * 2^exponent, the mantissa between sqrt(1/2) and sqrt(2);
  // then log(m) = 2 atanh((m - 1) / (m + 1)).
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);
  if (mantissa < kSqrtHalf) {
    mantissa *= 2;
    --exponent;
  }
  const double s = (mantissa - 1) / (mantissa + 1);
  return exponent * kLn2High +
         (exponent * kLn2Low + 2 * s * AtanhSeries(s * s));
}

double PortableExp(double x) {
  const double twos = std::nearbyint(x / (kLn2High + kLn2Low));
  const double rest = (x - twos * kLn2High) - twos * kLn2Low;
  double sum = 1;
  for (int i = 16; i >= 1; --i) {
    sum = 1 + sum * rest / i;
  }
  return std::ldexp(sum, static_cast<int>(twos));
}

double PortableExpm1Ratio(double x) {
  if (std::abs(x) > 1) {
    return (PortableExp(x) - 1) / x;
  }
  double sum = 1;
  for (int i = 20; i >= 2; --i) {
    sum = 1 + sum * x / i;
  }
  return sum;
}

double PortableLog1pRatio(double x) {
  if (std::abs(x) > 0.5) {
    return PortableLog(1 + x) / x;
  }
  const double s = x / (2 + x);
  return 2 / (2 + x) * AtanhSeries(s * s);
}

}  // namespace quire
