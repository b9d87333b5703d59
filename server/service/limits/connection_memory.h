// SPDX-License-Identifier: GPL-3.0-or-later
//
// Memory of client connections, which the block cache lends.
#ifndef QUIRE_SERVER_SERVICE_LIMITS_CONNECTION_MEMORY_H_
#define QUIRE_SERVER_SERVICE_LIMITS_CONNECTION_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "server/service/limits/memory_plan.h"

namespace quire {

// Upper bounds for one connection without calls, in bytes, rounded up from
// measurements with hostile clients: they fill the table of HPACK, and stop
// within a header.
struct ConnectionCost {
  // All of its memory in this process.
  uint64_t memory_bytes = 0;
  // The part of it that gRPC takes from its ResourceQuota, in steps of 4 KiB
  // for each of its allocators.
  uint64_t quota_bytes = 0;
};

inline constexpr ConnectionCost kPlainConnectionCost = {56 << 10, 16 << 10};
// OpenSSL and gRPC have buffers of 16 KiB, most of which no quota counts.
inline constexpr ConnectionCost kTlsConnectionCost = {140 << 10, 32 << 10};

// Reserves the memory of connections before gRPC gets them. Half of
// MemoryPlan::requests_bytes suffices for some; the block cache lends the
// memory of more, in steps, up to 7/8 of what it can spare. gRPC's quota grows
// with them: at a fixed size, it ends nearly all idle connections once they
// fill it. Thread-compatible.
class ConnectionMemory {
 public:
  // Takes `bytes` in total from the cache. Returns false, and changes nothing,
  // if other parts of the server have that memory now.
  using Borrow = std::function<bool(uint64_t bytes)>;
  using SetQuota = std::function<void(uint64_t bytes)>;

  // Calls `set_quota` at once. `plan` must outlive this object.
  ConnectionMemory(const MemoryPlan& plan, const ConnectionCost& cost,
                   Borrow borrow, SetQuota set_quota);

  // Adapts the memory to `count` connections. Returns the number of
  // connections that have memory now; fewer than `count` if there is not
  // enough. Blocks while the cache evicts.
  size_t Fit(size_t count);

  // Returns the largest result of Fit().
  size_t connections_max() const { return connections_max_; }

 private:
  const uint64_t requests_bytes_;
  const ConnectionCost cost_;
  // Connections that need no memory of the cache.
  const size_t included_count_;
  const size_t connections_max_;
  const Borrow borrow_;
  const SetQuota set_quota_;
  size_t reserved_count_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LIMITS_CONNECTION_MEMORY_H_
