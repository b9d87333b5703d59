// SPDX-License-Identifier: GPL-3.0-or-later
//
// One number bounds the server's memory; this divides it.
#ifndef QUIRE_SERVER_SERVICE_LIMITS_MEMORY_PLAN_H_
#define QUIRE_SERVER_SERVICE_LIMITS_MEMORY_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace quire {

struct ArchiveNeed {
  std::string name;
  // Dictionary, indexes and codec tables.
  uint64_t memory_bytes = 0;
};

// Parts of --memory, in bytes. Their sum is total_bytes.
struct MemoryPlan {
  uint64_t total_bytes = 0;
  // Code, heap of the libraries and stacks: what a server without archives and
  // calls was measured to take, rounded up.
  uint64_t base_bytes = 0;
  // What gRPC holds of connections and calls, above all of requests of which a
  // part has yet to arrive, and of those that no call has read yet.
  uint64_t requests_bytes = 0;
  uint64_t archives_bytes = 0;
  // Kept free so that the largest archive can be opened anew while the old one
  // is still held, grown by up to a quarter or a mebibyte, whichever is more; 0
  // where the memory does not suffice: then reloading needs a restart.
  uint64_t reload_bytes = 0;
  // Answers from admission to the wire.
  uint64_t in_flight_bytes = 0;
  // Device reads and blocks being decoded.
  uint64_t buffers_bytes = 0;
  // Working memory of the decoders of all archives (decode_workspaces.h).
  uint64_t workspaces_bytes = 0;
  // What is left.
  uint64_t cache_bytes = 0;
};

// Without `total_bytes`, a plan that has enough for a working cache. Where the
// server `may_grow` by archives that are added while it runs, reload_bytes is
// also at least a quarter of what the archives leave free.
// Errors: FailedPrecondition  `total_bytes` is too small; the message has the
//                             sum that is needed and what it is made of.
absl::StatusOr<MemoryPlan> PlanMemory(std::optional<uint64_t> total_bytes,
                                      const std::vector<ArchiveNeed>& archives,
                                      bool may_grow = false);

// What archives take while one of them is opened, in bytes.
struct ReloadNeed {
  // Of all archives that are served, the one to be replaced included, if any.
  uint64_t served_bytes = 0;
  // Of archives replaced before that calls still read.
  uint64_t replaced_bytes = 0;
  // Of the archive that is opened: estimated at first, then what it takes.
  uint64_t fresh_bytes = 0;
};

// What the cache may hold, in bytes, while archives hold `archives_bytes`: what
// they take beyond the plan's space for archives and reloading is taken from
// the cache, down to the least that any plan gives it.
uint64_t CacheBytesBeside(const MemoryPlan& plan, uint64_t archives_bytes);

// Errors: FailedPrecondition  they exceed what the plan has for archives and
//                             reloading, even with the least cache; says how
//                             much is free, what to do.
absl::Status CheckReload(const MemoryPlan& plan, const ReloadNeed& need);

// For the start-up message: one line a part.
std::string DescribePlan(const MemoryPlan& plan,
                         const std::vector<ArchiveNeed>& archives);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LIMITS_MEMORY_PLAN_H_
