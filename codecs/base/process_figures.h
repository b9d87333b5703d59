// SPDX-License-Identifier: Apache-2.0
//
// Figures of this process, for the metrics of the two programs that listen.
#ifndef QUIRE_CODECS_BASE_PROCESS_FIGURES_H_
#define QUIRE_CODECS_BASE_PROCESS_FIGURES_H_

#include <vector>

namespace quire {

struct ProcessFigure {
  // As in the client libraries of Prometheus:
  // https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics
  const char* name;
  // One sentence without its full stop.
  const char* help;
  // Only grows.
  bool is_counter;
  double value;
};

// Reads /proc at the time of the call; omits missing values. Thread-safe.
std::vector<ProcessFigure> ReadProcessFigures();

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_PROCESS_FIGURES_H_
