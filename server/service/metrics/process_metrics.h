// SPDX-License-Identifier: GPL-3.0-or-later
//
// What Prometheus sees of the process, under the names that its client
// libraries have in common:
// https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics
#ifndef QUIRE_SERVER_SERVICE_METRICS_PROCESS_METRICS_H_
#define QUIRE_SERVER_SERVICE_METRICS_PROCESS_METRICS_H_

#include <vector>

#include "prometheus/metric_family.h"

namespace quire {

// Read from /proc at the moment of the call; what it does not say is left out.
// Thread-safe.
std::vector<prometheus::MetricFamily> CollectProcessMetrics();

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_METRICS_PROCESS_METRICS_H_
