// SPDX-License-Identifier: Apache-2.0
//
// Counters of the gateway in Prometheus' text format.
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

// Reasons for closing a connection without an answer.
enum class Refusal {
  kConnections,         // --connections
  kAddressConnections,  // --connections-per-address
  kMemory,              // --memory
  kHeaderTimeout,       // --header-timeout
};
inline constexpr size_t kRefusalCount = 4;

// Thread-safe.
class GatewayMetrics {
 public:
  // One request was answered, or its answer was cut. `size_bytes` counts its
  // body.
  void CountRequest(int status, uint64_t size_bytes, bool is_cut,
                    absl::Duration duration);

  void CountRefusal(Refusal refusal) {
    refusals_[static_cast<size_t>(refusal)].fetch_add(
        1, std::memory_order_relaxed);
  }

  void AddConnections(int64_t change) {
    connections_.fetch_add(change, std::memory_order_relaxed);
  }

  void AddRequestsInFlight(int64_t change) {
    in_flight_.fetch_add(change, std::memory_order_relaxed);
  }

  void CountLostLogLine() {
    lost_log_lines_.fetch_add(1, std::memory_order_relaxed);
  }

  // `queue_size` is the number of requests that wait for a thread.
  std::string Render(const MemoryBudget& memory, const MemoryBudget& spool,
                     size_t queue_size, bool is_draining) const;

 private:
  static constexpr size_t kStatusCount = 600;

  std::array<std::atomic<uint64_t>, kStatusCount> requests_ = {};
  std::array<std::atomic<uint64_t>, kRefusalCount> refusals_ = {};
  std::atomic<uint64_t> cut_answers_ = 0;
  std::atomic<uint64_t> size_bytes_ = 0;
  std::atomic<uint64_t> duration_us_ = 0;
  std::atomic<int64_t> connections_ = 0;
  std::atomic<int64_t> in_flight_ = 0;
  std::atomic<uint64_t> lost_log_lines_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_GATEWAY_METRICS_H_
