// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/planner/server_model.h"

#include <vector>

#include "gtest/gtest.h"

namespace quire {
namespace {

TEST(ServerModelTest, OneRequestWaitsForNobody) {
  const std::vector<Station> stations = {
      {.name = "cpu", .demand_seconds = 0.002, .server_count = 4},
      {.name = "drive", .demand_seconds = 0.01},
      {.name = "network", .demand_seconds = 0.001, .delay_seconds = 0.02}};
  const Throughput alone = SolveClosedNetwork(stations, 1);
  EXPECT_NEAR(alone.seconds, 0.033, 1e-12);
  EXPECT_NEAR(alone.per_second, 1 / 0.033, 1e-9);
}

TEST(ServerModelTest, ManyReachTheBottleneck) {
  const std::vector<Station> stations = {
      {.name = "cpu", .demand_seconds = 0.002, .server_count = 4},
      {.name = "drive", .demand_seconds = 0.01}};
  const Throughput many = SolveClosedNetwork(stations, 500);
  EXPECT_NEAR(many.per_second, 100, 1e-6);
  // Little's law.
  EXPECT_NEAR(many.seconds * many.per_second, 500, 1e-6);
  EXPECT_EQ(many.limit, "drive");
  const std::vector<Station> faster = {
      {.name = "cpu", .demand_seconds = 0.002, .server_count = 4},
      {.name = "drive", .demand_seconds = 0.0001}};
  EXPECT_NEAR(SolveClosedNetwork(faster, 500).per_second, 2000, 1);
  EXPECT_EQ(SolveClosedNetwork(faster, 500).limit, "cpu");
}

// Two equal stations: n / (n + 1) of the rate of one, exactly.
TEST(ServerModelTest, IsExactForTwoEqualStations) {
  const std::vector<Station> stations = {{.name = "a", .demand_seconds = 0.5},
                                         {.name = "b", .demand_seconds = 0.5}};
  for (const uint32_t n : {1U, 2U, 5U, 64U}) {
    EXPECT_NEAR(SolveClosedNetwork(stations, n).per_second, 2.0 * n / (n + 1),
                1e-9)
        << n;
  }
}

TEST(ServerModelTest, NothingIsNothing) {
  EXPECT_EQ(SolveClosedNetwork({}, 5).per_second, 0);
  const std::vector<Station> stations = {{.name = "a", .demand_seconds = 1}};
  EXPECT_EQ(SolveClosedNetwork(stations, 0).per_second, 0);
}

}  // namespace
}  // namespace quire
