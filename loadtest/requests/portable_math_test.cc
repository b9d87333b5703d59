// SPDX-License-Identifier: Apache-2.0
#include "loadtest/requests/portable_math.h"

#include <cmath>
#include <random>

#include "gtest/gtest.h"

namespace quire {
namespace {

// Relative to the larger of the exact value and `scale`.
void ExpectClose(double value, double exact, double scale, double x) {
  EXPECT_LE(std::abs(value - exact), 1e-14 * std::max(std::abs(exact), scale))
      << x;
}

TEST(PortableMathTest, AgreesWithTheLibrary) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(-690, 690);
  std::uniform_real_distribution<double> near_zero(-2, 2);
  for (int i = 0; i < 20'000; ++i) {
    const double x = exponent(random);
    ExpectClose(PortableExp(x) / std::exp(x), 1, 1, x);
    ExpectClose(PortableLog(std::exp(x)), std::log(std::exp(x)), 1e-3, x);
    const double y = near_zero(random);
    ExpectClose(PortableExpm1Ratio(y), std::expm1(y) / y, 0, y);
    if (y > -0.999) {
      ExpectClose(PortableLog1pRatio(y), std::log1p(y) / y, 0, y);
    }
  }
}

TEST(PortableMathTest, LosesNothingNearZero) {
  EXPECT_EQ(PortableExpm1Ratio(0), 1);
  EXPECT_EQ(PortableLog1pRatio(0), 1);
  EXPECT_EQ(PortableLog(1), 0);
  EXPECT_EQ(PortableExp(0), 1);
  EXPECT_NEAR(PortableExpm1Ratio(1e-9), 1 + 0.5e-9, 1e-15);
  EXPECT_NEAR(PortableLog1pRatio(1e-9), 1 - 0.5e-9, 1e-15);
}

}  // namespace
}  // namespace quire
