// SPDX-License-Identifier: GPL-3.0-or-later
//
// How much memory a process may take where no one has said.
#ifndef QUIRE_SERVER_SERVICE_LIMITS_AVAILABLE_MEMORY_H_
#define QUIRE_SERVER_SERVICE_LIMITS_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace quire {

struct AvailableMemory {
  uint64_t size_bytes = 0;
  // What it was derived from, for the log.
  std::string source;
};

// Seven eighths of the lowest limit of this process' cgroup and of those above
// it (version 2: memory.max and memory.high; version 1:
// memory.limit_in_bytes): the kernel counts page cache and sockets, too.
// Without a limit below the machine's memory, half of what is available now.
// `root` is the root of the file system; tests have one of their own. Blocks on
// I/O. Errors: FailedPrecondition  the kernel says neither.
absl::StatusOr<AvailableMemory> FindAvailableMemory(
    const std::string& root = "");

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LIMITS_AVAILABLE_MEMORY_H_
