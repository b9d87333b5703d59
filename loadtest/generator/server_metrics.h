// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_GENERATOR_SERVER_METRICS_H_
#define QUIRE_LOADTEST_GENERATOR_SERVER_METRICS_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace quire {

// Counters by name and labels, as they are written:
// "quire_calls_total{method=\"Read\"}".
using ServerCounters = std::map<std::string, double>;

// What counts upwards on a page of metrics in Prometheus' text format:
// counters, and sums and counts of histograms and summaries. What is no such
// line is left out: a page of any server can be read. Thread-safe.
ServerCounters ParseCounters(absl::string_view page);

// By how much each of `after` is above that of `before`, or above 0 if it is
// new. Thread-safe.
ServerCounters RiseOf(const ServerCounters& before,
                      const ServerCounters& after);

}  // namespace quire

#endif  // QUIRE_LOADTEST_GENERATOR_SERVER_METRICS_H_
