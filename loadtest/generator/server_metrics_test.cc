// SPDX-License-Identifier: Apache-2.0
#include "loadtest/generator/server_metrics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(ServerMetricsTest, ReadsWhatCountsUpwards) {
  const ServerCounters counters = ParseCounters(
      "# HELP a_total Things.\n# TYPE a_total counter\na_total 12\n"
      "# TYPE b_total counter\n"
      "b_total{archive=\"x } \\\" y\",codec=\"rlz\"} 3.5 1700000000\n"
      "b_total{archive=\"z\"} 1e3\n"
      "# TYPE c gauge\nc 7\n"
      "# TYPE d_seconds histogram\n"
      "d_seconds_bucket{le=\"0.1\"} 4\nd_seconds_bucket{le=\"+Inf\"} 5\n"
      "d_seconds_sum 0.75\nd_seconds_count 5\n");
  EXPECT_THAT(
      counters,
      ElementsAre(Pair("a_total", 12),
                  Pair("b_total{archive=\"x } \\\" y\",codec=\"rlz\"}", 3.5),
                  Pair("b_total{archive=\"z\"}", 1000),
                  Pair("d_seconds_count", 5), Pair("d_seconds_sum", 0.75)));
}

TEST(ServerMetricsTest, LeavesOutWhatIsNoMetric) {
  EXPECT_THAT(ParseCounters(""), IsEmpty());
  EXPECT_THAT(ParseCounters("<html>\n# TYPE\n# TYPE a\n# TYPE a counter b\n"),
              IsEmpty());
  EXPECT_THAT(ParseCounters("# TYPE a counter\na\na \na x\na{ 5\nab 5\n"),
              IsEmpty());
}

TEST(ServerMetricsTest, SubtractsWhatWasThereBefore) {
  EXPECT_THAT(RiseOf({{"a", 3}, {"gone", 1}}, {{"a", 10}, {"new", 4}}),
              ElementsAre(Pair("a", 7), Pair("new", 4)));
}

}  // namespace
}  // namespace quire
