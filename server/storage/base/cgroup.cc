// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/base/cgroup.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace quire {
namespace {

// Returns the words of a file; none if it is missing.
std::vector<std::string> ReadWords(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> words;
  for (std::string word; file >> word;) {
    words.push_back(word);
  }
  return words;
}

// `quota` and `period` are microseconds. Returns nullopt if `quota` is "max",
// -1 or malformed: no limit.
std::optional<uint32_t> CoresOf(const std::string& quota,
                                const std::string& period) {
  uint64_t used = 0;
  uint64_t of = 0;
  if (!absl::SimpleAtoi(quota, &used) || !absl::SimpleAtoi(period, &of) ||
      of == 0) {
    return std::nullopt;
  }
  return static_cast<uint32_t>(std::clamp<uint64_t>(
      used / of + (used % of == 0 ? 0 : 1), 1, UINT32_MAX));
}

}  // namespace

std::vector<std::string> CgroupDirectories(absl::string_view controller,
                                           const std::string& root) {
  std::vector<std::string> directories;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    // "0::/PATH" in version 2, "4:cpu,memory:/PATH" in version 1.
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) {
      continue;
    }
    std::string mount = "/sys/fs/cgroup";
    if (!parts[1].empty()) {
      const std::vector<std::string> names = absl::StrSplit(parts[1], ',');
      if (std::ranges::find(names, controller) == names.end()) {
        continue;
      }
      absl::StrAppend(&mount, "/", controller);
    }
    for (std::string group = parts[2];;) {
      while (!group.empty() && group.back() == '/') {
        group.pop_back();
      }
      directories.push_back(mount + group);
      if (group.empty()) {
        break;
      }
      const size_t slash = group.rfind('/');
      group.resize(slash == std::string::npos ? 0 : slash);
    }
  }
  return directories;
}

std::optional<uint32_t> CgroupCores(const std::string& root) {
  std::optional<uint32_t> lowest;
  for (const std::string& directory : CgroupDirectories("cpu", root)) {
    std::vector<std::string> words = ReadWords(root + directory + "/cpu.max");
    if (words.empty()) {
      words = ReadWords(root + directory + "/cpu.cfs_quota_us");
      for (std::string& word :
           ReadWords(root + directory + "/cpu.cfs_period_us")) {
        words.push_back(std::move(word));
      }
    }
    if (words.size() != 2) {
      continue;
    }
    const std::optional<uint32_t> cores = CoresOf(words[0], words[1]);
    if (cores.has_value()) {
      lowest = std::min(*cores, lowest.value_or(*cores));
    }
  }
  return lowest;
}

uint32_t UsableCores() {
  cpu_set_t cores;
  // Fails on machines with more than 1024 cores.
  const auto count =
      static_cast<uint32_t>(sched_getaffinity(0, sizeof(cores), &cores) == 0
                                ? static_cast<unsigned>(CPU_COUNT(&cores))
                                : std::thread::hardware_concurrency());
  return std::max(1U, std::min(count, CgroupCores().value_or(UINT32_MAX)));
}

}  // namespace quire
