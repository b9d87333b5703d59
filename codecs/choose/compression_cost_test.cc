// SPDX-License-Identifier: Apache-2.0
#include "codecs/choose/compression_cost.h"

#include "gtest/gtest.h"

#include "codecs/choose/wire_cost.h"

namespace quire {
namespace {

constexpr double kMb = 1e6;
constexpr double kGbit = 1e9 / 8;
constexpr double kTb = 1e12;

// Table 2 of the paper.
constexpr CodecFigures kLz4Fast = {2945 * kMb, 6460 * kMb, 1.825};
constexpr CodecFigures kLz4 = {1796 * kMb, 5178 * kMb, 1.923};
constexpr CodecFigures kLz4Hc = {258 * kMb, 4333 * kMb, 2.0};
constexpr CodecFigures kLzo = {380 * kMb, 1938 * kMb, 1.887};
constexpr CodecFigures kXz = {26 * kMb, 97 * kMb, 2.632};
constexpr CodecFigures kZlib = {95 * kMb, 610 * kMb, 2.326};
constexpr CodecFigures kZstd = {658 * kMb, 2019 * kMb, 2.326};

// Section 2.2.3: two servers with 16 cores, and their drives.
constexpr StorageUnit kPair = {.base_price = 10'000,
                               .drives_price = 90'000,
                               .compression_price = 1'500,
                               .capacity_bytes = 833 * kTb,
                               .bytes_per_second = 10.8e9,
                               .core_count = 16};
// The paper rounds 60 times 833 TB.
constexpr double kAll = 60 * 833 * kTb;

TEST(CompressionCostTest, AddsUpPhases) {
  const Workload workload = {.compute_seconds = 100,
                             .network = {200 * kMb, 10 * kMb},
                             .storage = {600 * kMb, 20 * kMb}};
  EXPECT_DOUBLE_EQ(HardwareCompressedSeconds(workload, 1, 1), 150);
  EXPECT_DOUBLE_EQ(HardwareCompressedSeconds(workload, 2, 3), 120);
  const CodecFigures codec = {50 * kMb, 100 * kMb, 2};
  EXPECT_DOUBLE_EQ(
      CompressedSeconds(workload, 2, 3, codec, 400 * kMb, 200 * kMb), 130);
  EXPECT_DOUBLE_EQ(HardwareCompressedSeconds({.compute_seconds = 7}, 2, 2), 7);
  EXPECT_DOUBLE_EQ(CompressedSeconds({}, 2, 2, {}, 0, 0), 0);
}

// Equation 3 says where equation 2 breaks even.
TEST(CompressionCostTest, BreaksEvenAtTheThreshold) {
  const double threshold = PaysBelowBytesPerSecond(
      kLz4Fast.encode_bytes_per_second, kLz4Fast.decode_bytes_per_second,
      1 / kLz4Fast.ratio);
  for (const double speed : {0.99 * threshold, 1.01 * threshold}) {
    const Workload workload = {.network = {1e9, speed}};
    EXPECT_EQ(
        CompressedSeconds(workload, kLz4Fast.ratio, 1, kLz4Fast, 1e9, 1e9) <
            HardwareCompressedSeconds(workload, 1, 1),
        speed < threshold);
  }
  // Table 1 multiplies by the node's cores; its speeds are rounded.
  EXPECT_NEAR(24 * threshold, 21'900 * kMb, 220 * kMb);
  EXPECT_NEAR(24 * PaysPipelinedBelowBytesPerSecond(
                       kLz4Fast.encode_bytes_per_second,
                       kLz4Fast.decode_bytes_per_second, 1 / kLz4Fast.ratio),
              31'900 * kMb, 220 * kMb);
}

TEST(CompressionCostTest, IsAsFastAsTheSlowestOfAPath) {
  EXPECT_EQ(PathBytesPerSecond(1, 2, 3), 1);
  EXPECT_EQ(PathBytesPerSecond(2, 1, 3), 1);
  EXPECT_EQ(PathBytesPerSecond(3, 2, 1), 1);
}

// Section 2.2.1.
TEST(CompressionCostTest, GivesThePublishedMemory) {
  EXPECT_NEAR(128 / kLz4.ratio, 66.56, 0.005);
  EXPECT_NEAR(128 / kLzo.ratio, 67.83, 0.005);
  EXPECT_NEAR(LinkBytesPerSecond(1e15, kLzo, 24), 9.12e9, 1e6);
}

// Section 2.2.2.
TEST(CompressionCostTest, GivesThePublishedLinks) {
  EXPECT_NEAR(LinkBytesPerSecond(54.54 * kGbit, kLz4Fast, 24) / kGbit, 99.54,
              0.005);
  EXPECT_NEAR(LinkBytesPerSecond(32 * kGbit, kLz4Fast, 24) / kGbit, 58.4, 0.05);
  // "Roughly 125 Gbit/s".
  EXPECT_NEAR(LinkBytesPerSecond(54.54 * kGbit, kZstd, 24) / kGbit, 125, 2);
  // Without cores enough, compression is what limits.
  EXPECT_EQ(LinkBytesPerSecond(54.54 * kGbit, kLz4Fast, 1),
            kLz4Fast.encode_bytes_per_second);
}

// Section 2.2.3, scenario S1.
TEST(CompressionCostTest, BuysFewestUnits) {
  const auto count = [](const CodecFigures& codec) {
    return BuyFewestUnits(kPair, codec, 50'000 * kTb).unit_count;
  };
  EXPECT_EQ(count(kLz4Fast), 33U);
  EXPECT_EQ(count(kLz4), 32U);
  EXPECT_EQ(count(kLzo), 32U);
  EXPECT_EQ(count(kLz4Hc), 31U);
  EXPECT_EQ(count(kZlib), 26U);
  EXPECT_EQ(count(kZstd), 26U);
  EXPECT_EQ(count(kXz), 23U);
  const StoragePurchase bought = BuyFewestUnits(kPair, kLz4, 50'000 * kTb);
  EXPECT_DOUBLE_EQ(bought.price, 32 * 101'500);
  EXPECT_DOUBLE_EQ(bought.bytes_per_second, 32 * 10.8e9);
  // xz is what limits its units.
  EXPECT_DOUBLE_EQ(BuyFewestUnits(kPair, kXz, 50'000 * kTb).bytes_per_second,
                   23 * 16 * 26 * kMb);
}

// Scenario S2.
TEST(CompressionCostTest, BuysFewestDrives) {
  const auto buy = [](const CodecFigures& codec) {
    return BuyFewestDrives(kPair, codec, kAll, 60);
  };
  EXPECT_NEAR(buy(kLz4).price, 3.50e6, 5e3);
  EXPECT_NEAR(buy(kLz4Fast).price, 3.65e6, 5e3);
  EXPECT_NEAR(buy(kZstd).price, 3.01e6, 5e3);
  EXPECT_DOUBLE_EQ(buy(kLz4).bytes_per_second, 60 * 10.8e9);
  // "Decreased insignificantly by 20 GB/s".
  EXPECT_NEAR(buy(kZstd).bytes_per_second, 60 * 10.8e9 - 20e9, 5e9);
  // Without compression, what the system cost.
  StorageUnit plain = kPair;
  plain.compression_price = 0;
  EXPECT_NEAR(BuyFewestDrives(plain, {1e12, 1e12, 1}, kAll, 60).price, 6e6, 1);
}

}  // namespace
}  // namespace quire
