// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/planner/read_forecast.h"

#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr ArchiveShape kLarge = {.text_bytes = 1e12,
                                 .block_size_bytes = 64 << 10,
                                 .stored_share = 0.1,
                                 .decode_bytes_per_second = 2e9};

ReadingServer Server(const char* drive) {
  return {.drive = ParseDrive(drive).value(),
          .network_bytes_per_second = 1e11,
          .core_count = 4,
          .read_size_bytes = 16 << 10,
          .in_flight = 64};
}

TEST(ReadForecastTest, TheSlowestPartLimits) {
  const ReadForecast disk = ForecastReads(kLarge, Server("hdd"));
  EXPECT_EQ(disk.random.limit, "drive");
  EXPECT_LT(disk.random.per_second, 400);
  EXPECT_GT(disk.batch.per_second, disk.random.per_second);
  const ReadForecast ssd = ForecastReads(kLarge, Server("ssd"));
  EXPECT_EQ(ssd.random.limit, "processors");
  ReadingServer remote = Server("ssd");
  remote.network_bytes_per_second = 1e6;
  const ReadForecast slow = ForecastReads(kLarge, remote);
  EXPECT_EQ(slow.random.limit, "network");
  EXPECT_NEAR(slow.random.per_second, 1e6 / (16 << 10), 0.1);
  EXPECT_NEAR(slow.full_bytes_per_second, 1e6, 1);
  // The client decodes what was stored.
  EXPECT_NEAR(slow.full_stored_bytes_per_second, 1e7, 10);
}

TEST(ReadForecastTest, WhatIsCachedIsNeitherReadNorDecoded) {
  ArchiveShape archive = kLarge;
  archive.text_bytes = 1e9;
  const ReadForecast cold = ForecastReads(archive, Server("hdd"));
  archive.cache_bytes = 5e8;
  EXPECT_NEAR(ForecastReads(archive, Server("hdd")).random.per_second,
              2 * cold.random.per_second, 0.2 * cold.random.per_second);
  archive.cache_bytes = 2e9;
  const ReadForecast cached = ForecastReads(archive, Server("hdd"));
  EXPECT_EQ(cached.random.limit, "processors");
  EXPECT_GT(cached.random.per_second, 20'000);
  // Reading everything does not count on it.
  EXPECT_EQ(cached.full_bytes_per_second, cold.full_bytes_per_second);
}

TEST(ReadForecastTest, ABatchDecodesABlockOnceForAllWhoWaitForIt) {
  ArchiveShape archive = kLarge;
  // So slow that nothing else counts.
  archive.decode_bytes_per_second = 1e6;
  ReadingServer server = Server("ssd");
  server.core_count = 1;
  const double blocks = 1.25 * (64 << 10) / 1e6;
  EXPECT_NEAR(ForecastReads(archive, server).batch.per_second, 1 / blocks,
              0.01 / blocks);
  // 160 blocks, of each of which 27 ranges are under way.
  archive.text_bytes = 160 << 16;
  EXPECT_NEAR(ForecastReads(archive, server).batch.per_second * blocks,
              3'400 * 1.25 / 160, 0.5);
}

TEST(ReadForecastTest, CoresShareTheWork) {
  ReadingServer server = Server("ssd");
  server.core_count = 1;
  const ReadForecast one = ForecastReads(kLarge, server);
  server.core_count = 2;
  const ReadForecast two = ForecastReads(kLarge, server);
  EXPECT_NEAR(two.full_bytes_per_second, 2 * one.full_bytes_per_second, 1);
  EXPECT_NEAR(two.random.per_second, 2 * one.random.per_second,
              0.1 * one.random.per_second);
}

}  // namespace
}  // namespace quire
