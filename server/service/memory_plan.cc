// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/memory_plan.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "codecs/base/byte_size.h"

namespace quire {
namespace {

constexpr uint64_t kBaseBytes = 96 * kMiB;
constexpr uint64_t kInFlightBytesMin = 32 * kMiB;
constexpr uint64_t kInFlightBytesMax = 512 * kMiB;
constexpr uint64_t kBuffersBytesMin = 16 * kMiB;
constexpr uint64_t kBuffersBytesMax = 128 * kMiB;
constexpr uint64_t kCacheBytesMin = 16 * kMiB;
// What a server that was told nothing gives its cache and its answers.
constexpr uint64_t kDefaultFreeBytes = 512 * kMiB;

std::string Line(const std::string& what, uint64_t size_bytes) {
  return absl::StrFormat("  %-34s %10s\n", what, FormatByteSize(size_bytes));
}

}  // namespace

absl::StatusOr<MemoryPlan> PlanMemory(
    std::optional<uint64_t> total_bytes,
    const std::vector<ArchiveNeed>& archives) {
  MemoryPlan plan;
  plan.base_bytes = kBaseBytes;
  uint64_t largest_bytes = 0;
  for (const ArchiveNeed& archive : archives) {
    plan.archives_bytes += archive.memory_bytes;
    largest_bytes = std::max(largest_bytes, archive.memory_bytes);
  }
  // An archive that is built anew has often grown.
  const uint64_t reload_bytes = largest_bytes + largest_bytes / 4;
  const uint64_t fixed_bytes = plan.base_bytes + plan.archives_bytes;
  const uint64_t needed_bytes =
      fixed_bytes + kInFlightBytesMin + kBuffersBytesMin + kCacheBytesMin;
  plan.total_bytes =
      total_bytes.value_or(fixed_bytes + reload_bytes + kDefaultFreeBytes);
  if (plan.total_bytes < needed_bytes) {
    std::string parts = absl::StrCat("server ", FormatByteSize(kBaseBytes));
    for (const ArchiveNeed& archive : archives) {
      absl::StrAppend(&parts, " + archive ", archive.name, " ",
                      FormatByteSize(archive.memory_bytes));
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "--memory ", FormatByteSizeExact(plan.total_bytes),
        " is too little: ", FormatByteSize(needed_bytes), " are needed (",
        parts, " + answers ", FormatByteSize(kInFlightBytesMin), " + reads ",
        FormatByteSize(kBuffersBytesMin), " + cache ",
        FormatByteSize(kCacheBytesMin),
        "); give it more, or serve fewer archives"));
  }
  uint64_t free_bytes = plan.total_bytes - fixed_bytes;
  // The room for reloading must not squeeze the rest below a working size.
  if (free_bytes >= reload_bytes + (needed_bytes - fixed_bytes)) {
    plan.reload_bytes = reload_bytes;
    free_bytes -= reload_bytes;
  }
  plan.in_flight_bytes =
      std::clamp(free_bytes / 4, kInFlightBytesMin, kInFlightBytesMax);
  plan.buffers_bytes =
      std::clamp(free_bytes / 8, kBuffersBytesMin, kBuffersBytesMax);
  plan.cache_bytes = free_bytes - plan.in_flight_bytes - plan.buffers_bytes;
  return plan;
}

std::string DescribePlan(const MemoryPlan& plan,
                         const std::vector<ArchiveNeed>& archives) {
  std::string text =
      absl::StrCat("memory: ", FormatByteSize(plan.total_bytes), "\n");
  text += Line("server itself", plan.base_bytes);
  for (const ArchiveNeed& archive : archives) {
    text += Line(absl::StrCat("archive ", archive.name), archive.memory_bytes);
  }
  text += Line("room to reload an archive", plan.reload_bytes);
  text += Line("answers in flight, at most", plan.in_flight_bytes);
  text += Line("reads and decoding, at most", plan.buffers_bytes);
  text += Line("block cache, at most", plan.cache_bytes);
  return text;
}

}  // namespace quire
