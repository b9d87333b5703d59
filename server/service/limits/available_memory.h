// SPDX-License-Identifier: GPL-3.0-or-later
//
// Memory limit of a process without a configured one.
#ifndef QUIRE_SERVER_SERVICE_LIMITS_AVAILABLE_MEMORY_H_
#define QUIRE_SERVER_SERVICE_LIMITS_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace quire {

struct AvailableMemory {
  uint64_t size_bytes = 0;
  // Origin of the limit, for the log.
  std::string source;
};

// Returns seven eighths of the lowest limit of this process' cgroup and its
// ancestors, as the kernel counts page cache and sockets, too. (Version 2:
// memory.max and memory.high; version 1: memory.limit_in_bytes.) Without a
// limit below the machine's memory, returns half of the memory available now.
// `root` is the root of the file system, for tests. Blocks on I/O.
// Errors: FailedPrecondition  the kernel states neither.
absl::StatusOr<AvailableMemory> FindAvailableMemory(
    const std::string& root = "");

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LIMITS_AVAILABLE_MEMORY_H_
