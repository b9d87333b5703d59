// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/available_memory.h"

#include <fstream>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

#include "codecs/base/byte_size.h"
#include "server/storage/base/cgroup.h"

namespace quire {
namespace {

// Returns nullopt if the file is missing or has no number.
std::optional<uint64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  uint64_t number = 0;
  if (!std::getline(file, text) ||
      !absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &number)) {
    return std::nullopt;
  }
  return number;
}

// Example: "MemTotal:       16384 kB"
std::optional<uint64_t> ReadMemInfo(const std::string& root,
                                    absl::string_view field) {
  std::ifstream file(root + "/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(": "), absl::SkipEmpty());
    uint64_t number = 0;
    if (words.size() == 3 && words[0] == field && words[2] == "kB" &&
        absl::SimpleAtoi(words[1], &number)) {
      return number * kKiB;
    }
  }
  return std::nullopt;
}

struct Limit {
  uint64_t size_bytes = 0;
  std::string file;
};

std::optional<Limit> FindCgroupLimit(const std::string& root) {
  std::optional<Limit> lowest;
  for (const std::string& directory : CgroupDirectories("memory", root)) {
    for (const char* const name :
         {"memory.max", "memory.high", "memory.limit_in_bytes"}) {
      const std::string file = absl::StrCat(directory, "/", name);
      const std::optional<uint64_t> limit = ReadNumber(root + file);
      if (limit.has_value() &&
          (!lowest.has_value() || *limit < lowest->size_bytes)) {
        lowest = Limit{.size_bytes = *limit, .file = file};
      }
    }
  }
  return lowest;
}

}  // namespace

absl::StatusOr<AvailableMemory> FindAvailableMemory(const std::string& root) {
  const std::optional<uint64_t> total = ReadMemInfo(root, "MemTotal");
  const std::optional<Limit> limit = FindCgroupLimit(root);
  // Version 1 represents "no limit" by a very large number.
  if (limit.has_value() && (!total.has_value() || limit->size_bytes < *total)) {
    return AvailableMemory{
        .size_bytes = limit->size_bytes / 8 * 7,
        .source = absl::StrCat("7/8 of ", FormatByteSize(limit->size_bytes),
                               ", the limit in ", limit->file)};
  }
  const std::optional<uint64_t> available = ReadMemInfo(root, "MemAvailable");
  if (!available.has_value()) {
    return absl::FailedPreconditionError(
        "neither a cgroup nor /proc/meminfo states the available memory; give "
        "a size");
  }
  return AvailableMemory{
      .size_bytes = *available / 2,
      .source = absl::StrCat("half of ", FormatByteSize(*available),
                             ", which are available; no cgroup sets a limit")};
}

}  // namespace quire
