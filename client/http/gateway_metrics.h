// SPDX-License-Identifier: Apache-2.0
//
// Metrics of the gateway and its process in Prometheus' text format.
#ifndef QUIRE_CLIENT_HTTP_GATEWAY_METRICS_H_
#define QUIRE_CLIENT_HTTP_GATEWAY_METRICS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/time/time.h"

#include "client/http/bodies/memory_budget.h"

namespace quire {

// Reasons for closing a connection before a request.
enum class Refusal {
  kConnections,         // --connections
  kAddressConnections,  // --connections-per-address
  kMemory,              // --memory
  kHeaderTimeout,       // --header-timeout
};
inline constexpr size_t kRefusalCount = 4;

// Counts since the start of the process, and what is in flight. The names of
// the metrics are in docs/http.md; the counters of one call may be rendered
// before the others of it. Thread-safe; never blocks.
class GatewayMetrics {
 public:
  // One request was answered, or its answer was cut: it ended before the bytes
  // that its header promised. `status`: HTTP, below 600; `size_bytes`: bytes of
  // the body that were sent; `duration`: from the request's header to the end
  // of the answer. Call it once per request.
  void CountRequest(int status, uint64_t size_bytes, bool is_cut,
                    absl::Duration duration);

  // A connection was closed before a request.
  void CountRefusal(Refusal refusal) {
    refusals_[static_cast<size_t>(refusal)].fetch_add(
        1, std::memory_order_relaxed);
  }

  // 1 when a connection opens, and -1 when it closes.
  void AddConnections(int64_t change) {
    connections_.fetch_add(change, std::memory_order_relaxed);
  }

  // 1 when a request's header has arrived, and -1 after its answer.
  void AddRequestsInFlight(int64_t change) {
    in_flight_.fetch_add(change, std::memory_order_relaxed);
  }

  // A line of --access-log could not be written.
  void CountLostLogLine() {
    lost_log_lines_.fetch_add(1, std::memory_order_relaxed);
  }

  // Returns the page of metrics. `memory` and `spool` are the budgets of
  // --memory and of the disk; `queue_size` is the number of requests that wait
  // for a thread.
  std::string Render(const MemoryBudget& memory, const MemoryBudget& spool,
                     size_t queue_size, bool is_draining) const;

 private:
  static constexpr size_t kStatusCount = 600;
  // Upper bounds of the buckets of durations, inclusive, in milliseconds; one
  // more bucket has the rest.
  static constexpr std::array<double, 13> kBoundsMs = {
      1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1'000, 2'500, 5'000, 10'000};

  std::array<std::atomic<uint64_t>, kStatusCount> requests_ = {};
  std::array<std::atomic<uint64_t>, kRefusalCount> refusals_ = {};
  std::atomic<uint64_t> cut_answers_ = 0;
  std::atomic<uint64_t> size_bytes_ = 0;
  std::atomic<uint64_t> duration_us_ = 0;
  // Not cumulative.
  std::array<std::atomic<uint64_t>, kBoundsMs.size() + 1> durations_ = {};
  std::atomic<int64_t> connections_ = 0;
  std::atomic<int64_t> in_flight_ = 0;
  std::atomic<uint64_t> lost_log_lines_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_GATEWAY_METRICS_H_
