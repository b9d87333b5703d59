// SPDX-License-Identifier: GPL-3.0-or-later
//
// Prometheus metrics of storage, memory and archives. METRICS.md lists the
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
#include "server/storage/remote/remote_store.h"

namespace quire {

// Figures of scrubbing one archive.
struct ScrubFigures {
  std::string archive;
  uint64_t scrubbed_bytes = 0;
  // Damaged blocks of the current pass or the last one, whichever has more.
  uint64_t damaged_count = 0;
  // End of the last pass; before the first, when the archive was first seen. In
  // seconds since 1970.
  int64_t completed_at_s = 0;
};

// Connections of clients: open ones, and totals since the start.
struct ConnectionFigures {
  uint64_t open_count = 0;
  // Refused because their client had its share.
  uint64_t refused_to_client_count = 0;
  // Refused because file descriptors were scarce.
  uint64_t refused_to_all_count = 0;
  // Refused because connections had all memory that they can have.
  uint64_t refused_memory_count = 0;
  // Closed because partly received requests had the memory.
  uint64_t crowded_out_count = 0;
  // Limits on open_count.
  uint64_t descriptors_max = 0;
  uint64_t memory_max = 0;
  // Closed because they had no call.
  uint64_t silent_ended_count = 0;
  // Failed attempts to accept a connection.
  uint64_t accept_error_count = 0;
};

// Archives that are open from stale copies (copy_confirmations.h).
struct StaleFigures {
  uint64_t archive_count = 0;
  // Longest time since a store confirmed one.
  absl::Duration age_max = absl::ZeroDuration();
};

// Archives of --archives-list since the start.
struct ListedFigures {
  uint64_t opened_count = 0;
  uint64_t failed_count = 0;
};

// Reads gauges and counters when scraped, without any cost for calls.
// Thread-safe. Its sources must outlive it.
class ServerCollector : public prometheus::Collectable {
 public:
  struct Sources {
    const BlockStore& store;
    const Admission& admission;
    const Catalog& catalog;
    const MemoryPlan& plan;
    // Expiry of the certificate; nothing without TLS.
    std::function<std::optional<absl::Time>()> certificate_expiry;
    // Earliest expiry of an access rule; nothing if none expires.
    std::function<std::optional<absl::Time>()> access_expiry;
    std::function<uint64_t()> dropped_log_lines;
    std::function<ListedFigures()> listed_archives;
    std::function<ConnectionFigures()> connections;
    // Number of calls ended because their client had stopped reading.
    std::function<uint64_t()> stalled_calls;
    const CallMetrics& calls;
    // Failed TLS handshakes by reason.
    std::function<std::vector<std::pair<std::string, uint64_t>>()>
        handshake_failures;
    // None without scrubbing.
    std::function<std::vector<ScrubFigures>()> scrub;
    absl::Duration scrub_interval;
    // Null without archives in object stores.
    const RemoteStore* remote_store = nullptr;
    // Called if there are.
    std::function<StaleFigures()> stale = {};
  };

  explicit ServerCollector(Sources sources) : sources_(std::move(sources)) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const Sources sources_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_METRICS_SERVER_COLLECTOR_H_
