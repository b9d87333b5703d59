// SPDX-License-Identifier: Apache-2.0
#include "loadtest/requests/zipf_sampler.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr uint64_t kSeed = 20261122;

// Returns the chi-square of drawn ranks against their exact probabilities, in
// standard deviations from its mean; rare ranks share a cell.
double DeviationOf(uint64_t size, double exponent, uint64_t draw_count) {
  std::vector<double> expected(size + 1);
  double sum = 0;
  for (uint64_t rank = size; rank > 0; --rank) {
    expected[rank] = std::pow(static_cast<double>(rank), -exponent);
    sum += expected[rank];
  }
  std::vector<uint64_t> seen(size + 1);
  const ZipfSampler sampler(size, exponent);
  RandomStream random(kSeed);
  for (uint64_t i = 0; i < draw_count; ++i) {
    const uint64_t rank = sampler.Sample(random);
    EXPECT_GE(rank, 1u);
    EXPECT_LE(rank, size);
    ++seen[std::min(rank, size)];
  }
  double chi_square = 0;
  double freedom = -1;
  double cell_expected = 0;
  double cell_seen = 0;
  for (uint64_t rank = 1; rank <= size; ++rank) {
    cell_expected += expected[rank] / sum * static_cast<double>(draw_count);
    cell_seen += static_cast<double>(seen[rank]);
    if (cell_expected >= 20 || rank == size) {
      const double difference = cell_seen - cell_expected;
      chi_square += difference * difference / std::max(cell_expected, 1.0);
      ++freedom;
      cell_expected = 0;
      cell_seen = 0;
    }
  }
  return (chi_square - freedom) / std::sqrt(2 * std::max(freedom, 1.0));
}

TEST(ZipfSamplerTest, DrawsEachRankAsOftenAsItShould) {
  struct Case {
    uint64_t size;
    double exponent;
  };

  for (const Case& zipf :
       {Case{10, 0.99}, Case{2, 0.5}, Case{1000, 0.99}, Case{1000, 1.0},
        Case{1000, 1.5}, Case{100, 0.0}, Case{100, 3.0}, Case{5000, 0.6}}) {
    // Five standard deviations; the result is reproducible, as the seed is
    // fixed.
    EXPECT_LT(std::abs(DeviationOf(zipf.size, zipf.exponent, 200'000)), 5)
        << zipf.size << " " << zipf.exponent;
  }
}

TEST(ZipfSamplerTest, ATestOfThisKindSeesAnotherExponent) {
  // The same draws, against probabilities of an exponent that is 2 % off.
  std::vector<uint64_t> seen(101);
  const ZipfSampler sampler(100, 0.97);
  RandomStream random(kSeed);
  for (int i = 0; i < 200'000; ++i) {
    ++seen[sampler.Sample(random)];
  }
  double sum = 0;
  for (int rank = 1; rank <= 100; ++rank) {
    sum += std::pow(rank, -0.99);
  }
  double chi_square = 0;
  for (size_t rank = 1; rank <= 100; ++rank) {
    const double expected =
        200'000 * std::pow(static_cast<double>(rank), -0.99) / sum;
    const double difference = static_cast<double>(seen[rank]) - expected;
    chi_square += difference * difference / expected;
  }
  EXPECT_GT((chi_square - 99) / std::sqrt(198.0), 5);
}

TEST(ZipfSamplerTest, TakesOneItemAndVeryMany) {
  RandomStream random(kSeed);
  for (const double exponent : {0.0, 0.5, 0.99, 1.0, 2.0, 10.0}) {
    EXPECT_EQ(ZipfSampler(1, exponent).Sample(random), 1u);
    const ZipfSampler many(uint64_t{1} << 50, exponent);
    for (int i = 0; i < 1000; ++i) {
      const uint64_t rank = many.Sample(random);
      ASSERT_GE(rank, 1u);
      ASSERT_LE(rank, uint64_t{1} << 50);
    }
  }
}

}  // namespace
}  // namespace quire
