// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/metrics/call_metrics.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "prometheus/metric_family.h"
#include "prometheus/registry.h"

namespace quire {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;

// Returns the metric of `family` with the label method="Read", or the only one.
ClientMetric Find(const std::vector<MetricFamily>& families,
                  const std::string& family) {
  for (const MetricFamily& candidate : families) {
    for (const ClientMetric& metric : candidate.metric) {
      const bool is_wanted =
          metric.label.empty() || metric.label[0].value == "Read";
      if (candidate.name == family && is_wanted) {
        return metric;
      }
    }
  }
  ADD_FAILURE() << "no metric " << family;
  return {};
}

TEST(CallMetricsTest, CountsCallsWhileTheyRunAndTheirSeconds) {
  prometheus::Registry registry;
  CallMetrics metrics(registry);
  const auto in_flight = [&] {
    return Find(registry.Collect(), "quire_calls_in_flight").gauge.value;
  };
  metrics.CallStarted(Method::kRead);
  metrics.CallStarted(Method::kRead);
  EXPECT_EQ(in_flight(), 2);
  metrics.CallEnded(Method::kRead, grpc::StatusCode::OK, absl::Seconds(3));
  EXPECT_EQ(in_flight(), 1);
  metrics.CallEnded(Method::kRead, grpc::StatusCode::OK, absl::Seconds(4));
  EXPECT_EQ(in_flight(), 0);
  const ClientMetric duration =
      Find(registry.Collect(), "quire_call_duration_seconds");
  EXPECT_EQ(duration.histogram.sample_count, 2u);
  EXPECT_DOUBLE_EQ(duration.histogram.sample_sum, 7);
}

}  // namespace
}  // namespace quire
