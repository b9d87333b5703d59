// SPDX-License-Identifier: GPL-3.0-or-later
//
// What Prometheus sees of storage, memory and archives. METRICS.md lists the
// names.
#ifndef QUIRE_SERVER_SERVICE_METRICS_SERVER_COLLECTOR_H_
#define QUIRE_SERVER_SERVICE_METRICS_SERVER_COLLECTOR_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"

#include "server/service/catalog/catalog.h"
#include "server/service/limits/admission.h"
#include "server/service/limits/memory_plan.h"
#include "server/service/metrics/call_metrics.h"
#include "server/storage/block_store.h"

namespace quire {

// Connections of clients: now, and counted since the start.
struct ConnectionFigures {
  uint64_t open_count = 0;
  // For their client had its share.
  uint64_t refused_to_client_count = 0;
  // For descriptors were scarce.
  uint64_t refused_to_all_count = 0;
  // Closed, as they had no call.
  uint64_t silent_ended_count = 0;
  // Failures of the system to give one.
  uint64_t accept_error_count = 0;
};

// Reads levels and counters at the moment of scraping, so that they cost calls
// nothing. Thread-safe. What it is made from must outlive it.
class ServerCollector : public prometheus::Collectable {
 public:
  struct Sources {
    const BlockStore& store;
    const Admission& admission;
    const Catalog& catalog;
    const MemoryPlan& plan;
    // When the certificate expires; nothing without TLS.
    std::function<std::optional<absl::Time>()> certificate_expiry;
    // When the first rules of access end; nothing if none do.
    std::function<std::optional<absl::Time>()> access_expiry;
    std::function<uint64_t()> dropped_log_lines;
    // Archives that are to be served and cannot be opened.
    std::function<uint64_t()> broken_archives;
    std::function<ConnectionFigures()> connections;
    const CallMetrics& calls;
    // Failed TLS handshakes by reason.
    std::function<std::vector<std::pair<std::string, uint64_t>>()>
        handshake_failures;
  };

  explicit ServerCollector(Sources sources) : sources_(std::move(sources)) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const Sources sources_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_METRICS_SERVER_COLLECTOR_H_
