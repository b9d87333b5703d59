// SPDX-License-Identifier: GPL-3.0-or-later
//
// Limits that the kernel sets to this process by its control group.
#ifndef QUIRE_SERVER_STORAGE_BASE_CGROUP_H_
#define QUIRE_SERVER_STORAGE_BASE_CGROUP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace quire {

// Returns the directories of this process' control group and of its ancestors,
// whose limits hold together: of version 2, and of version 1 those of
// `controller`, such as "memory". They need not exist: in a container the path
// is often the machine's, and only the last one is there. In this function and
// the next, `root` is the root of the file system, for tests; the directories
// are below it, but do not begin with it. Blocks on I/O.
std::vector<std::string> CgroupDirectories(absl::string_view controller,
                                           const std::string& root = "");

// Returns the lowest limit on processor time in the control groups, in cores,
// rounded up, at least 1; nullopt without a limit. (Version 2: cpu.max; version
// 1: cpu.cfs_quota_us and cpu.cfs_period_us.) Blocks on I/O.
std::optional<uint32_t> CgroupCores(const std::string& root = "");

// Returns the number of cores that this process may use, at least 1: the lower
// of CgroupCores() and its processor affinity. The default number of threads
// for computations. Blocks on I/O.
uint32_t UsableCores();

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_BASE_CGROUP_H_
