// SPDX-License-Identifier: GPL-3.0-or-later
//
// What Prometheus sees of storage, memory and archives. METRICS.md lists the
// names.
#ifndef QUIRE_SERVER_SERVICE_METRICS_SERVER_COLLECTOR_H_
#define QUIRE_SERVER_SERVICE_METRICS_SERVER_COLLECTOR_H_

#include <functional>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"

#include "server/service/catalog/catalog.h"
#include "server/service/limits/admission.h"
#include "server/service/limits/memory_plan.h"
#include "server/storage/block_store.h"

namespace quire {

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
    std::function<uint64_t()> dropped_log_lines;
    // Archives that are to be served and cannot be opened.
    std::function<uint64_t()> broken_archives;
    // Of clients; nothing if that cannot be told.
    std::function<std::optional<uint64_t>()> connections;
  };

  explicit ServerCollector(Sources sources) : sources_(std::move(sources)) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const Sources sources_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_METRICS_SERVER_COLLECTOR_H_
