// SPDX-License-Identifier: GPL-3.0-or-later
//
// Prometheus metrics of the process, under the common names of its client
// libraries:
// https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics
#ifndef QUIRE_SERVER_SERVICE_METRICS_PROCESS_METRICS_H_
#define QUIRE_SERVER_SERVICE_METRICS_PROCESS_METRICS_H_

#include <vector>

#include "prometheus/metric_family.h"

namespace quire {

// Reads /proc at the time of the call; omits missing values.
// Thread-safe.
std::vector<prometheus::MetricFamily> CollectProcessMetrics();

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_METRICS_PROCESS_METRICS_H_
