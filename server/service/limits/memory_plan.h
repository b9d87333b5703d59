// SPDX-License-Identifier: GPL-3.0-or-later
//
// Divides the memory of the server, which one number bounds.
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

// Archives that are opened on first use. They need not fit all at a time.
struct ListedNeed {
  uint64_t count = 0;
  // The largest archive whose memory is known.
  ArchiveNeed largest = {};
  uint64_t sum_bytes = 0;
  // The memory of some is known only when they are opened.
  bool has_unknown = false;
};

// Parts of --memory, in bytes. Their sum is total_bytes.
struct MemoryPlan {
  uint64_t total_bytes = 0;
  // Code, heap of the libraries and stacks: the measured size of a server
  // without archives and calls, rounded up; and WireEncoders::kBytesMax.
  uint64_t base_bytes = 0;
  // Memory of gRPC for connections and calls, above all for partly received and
  // unread requests.
  uint64_t requests_bytes = 0;
  // Rules of `serve --withdrawn` (WithdrawalFile::PlannedBytes()).
  uint64_t withdrawals_bytes = 0;
  uint64_t archives_bytes = 0;
  // Open archives of --archives-list. Before they take more, some are closed.
  uint64_t listed_bytes = 0;
  // Transfers from object stores, and what is known about local copies.
  uint64_t store_bytes = 0;
  // Reserved for opening the largest archive again while the old one is held,
  // grown by up to a quarter or a mebibyte, whichever is more. 0 if the memory
  // is too small: reloading then needs a restart.
  uint64_t reload_bytes = 0;
  // Answers from admission to the wire.
  uint64_t in_flight_bytes = 0;
  // Device reads and blocks being decoded.
  uint64_t buffers_bytes = 0;
  // Working memory of the decoders of all archives (decode_workspaces.h).
  uint64_t workspaces_bytes = 0;
  // The rest.
  uint64_t cache_bytes = 0;
};

// Without `total_bytes`, returns a plan with a working cache. If the server
// `may_grow` by archives added while it runs, reload_bytes is also at least a
// quarter of the memory that the archives leave free. `withdrawals_bytes` and
// `store_bytes` are MemoryPlan's. `listed` get what they need, at most half of
// the free memory, and at least what the largest needs.
// Errors: FailedPrecondition  `total_bytes` is too small; the message states
//                             the required sum and its parts.
absl::StatusOr<MemoryPlan> PlanMemory(std::optional<uint64_t> total_bytes,
                                      const std::vector<ArchiveNeed>& archives,
                                      bool may_grow = false,
                                      uint64_t withdrawals_bytes = 0,
                                      uint64_t store_bytes = 0,
                                      const ListedNeed& listed = {});

// Errors: FailedPrecondition  an archive of --archives-list of this size does
//                             not fit even if all others of the list are
//                             closed; states both sizes.
absl::Status CheckFitsAlone(const MemoryPlan& plan, uint64_t memory_bytes);

// Memory of archives while one of them is opened, in bytes.
struct ReloadNeed {
  // All served archives, including the one to be replaced, if any.
  uint64_t served_bytes = 0;
  // Archives replaced or closed earlier that calls still read.
  uint64_t replaced_bytes = 0;
  // The archives being opened: first an estimate, then their actual size.
  uint64_t fresh_bytes = 0;
  // Part of the cache that connections have (connection_memory.h).
  uint64_t connections_bytes = 0;
};

// Returns the part of the cache above its minimum in any plan.
uint64_t LendableCacheBytes(const MemoryPlan& plan);

// Returns the limit of the cache, in bytes, while archives hold
// `archives_bytes` and connections `connections_bytes` of the cache. The excess
// of archives over the plan's space for archives and reloading is taken from
// the cache, too, both together down to its minimum in any plan.
uint64_t CacheBytesBeside(const MemoryPlan& plan, uint64_t archives_bytes,
                          uint64_t connections_bytes = 0);

// Errors: FailedPrecondition  they exceed the plan's space for archives and
//                             reloading, even with the smallest cache; states
//                             the free memory and what to do.
absl::Status CheckReload(const MemoryPlan& plan, const ReloadNeed& need);

// Returns the start-up message: one line per part.
std::string DescribePlan(const MemoryPlan& plan,
                         const std::vector<ArchiveNeed>& archives);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LIMITS_MEMORY_PLAN_H_
