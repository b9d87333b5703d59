// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/memory_plan.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "codecs/base/byte_size.h"
#include "codecs/payload/payload_codec.h"

namespace quire {
namespace {

constexpr uint64_t kBaseBytes = 48 * kMiB;
// Half of it is for connections without calls.
constexpr uint64_t kRequestsBytes = 32 * kMiB;
constexpr uint64_t kInFlightBytesMin = 16 * kMiB;
constexpr uint64_t kInFlightBytesMax = 512 * kMiB;
constexpr uint64_t kBuffersBytesMin = 8 * kMiB;
constexpr uint64_t kBuffersBytesMax = 128 * kMiB;
// One workspace of any codec, as in DecodeWorkspaces.
constexpr uint64_t kWorkspacesBytesMin = kDecodeScratchBytesMax;
constexpr uint64_t kWorkspacesBytesMax = 128 * kMiB;
constexpr uint64_t kCacheBytesMin = 8 * kMiB;
constexpr uint64_t kReloadGrowthBytesMin = kMiB;
// Cache and answers of a server without --memory.
constexpr uint64_t kDefaultFreeBytes = 512 * kMiB;
// Open archives of --archives-list of a server without --memory.
constexpr uint64_t kDefaultListedBytes = 512 * kMiB;
// A name, a path and a description.
constexpr uint64_t kListedEntryBytes = kKiB;

constexpr size_t kNamedArchivesMax = 5;

// Returns the archives for a message: the largest ones, and the others as one.
std::vector<ArchiveNeed> Largest(std::vector<ArchiveNeed> archives) {
  for (ArchiveNeed& archive : archives) {
    archive.name = absl::StrCat("archive ", archive.name);
  }
  if (archives.size() <= kNamedArchivesMax + 1) {
    return archives;
  }
  std::stable_sort(archives.begin(), archives.end(),
                   [](const ArchiveNeed& a, const ArchiveNeed& b) {
                     return a.memory_bytes > b.memory_bytes;
                   });
  ArchiveNeed others = {
      absl::StrCat(archives.size() - kNamedArchivesMax, " other archives"), 0};
  for (size_t i = kNamedArchivesMax; i < archives.size(); ++i) {
    others.memory_bytes += archives[i].memory_bytes;
  }
  archives.resize(kNamedArchivesMax);
  archives.push_back(std::move(others));
  return archives;
}

std::string Line(const std::string& what, uint64_t size_bytes) {
  return absl::StrFormat("  %-34s %10s\n", what, FormatByteSize(size_bytes));
}

// Returns the memory of all but the largest, in bytes.
uint64_t MoreListedBytes(const ListedNeed& listed) {
  return listed.has_unknown ? std::numeric_limits<uint64_t>::max() / 4
                            : listed.sum_bytes - listed.largest.memory_bytes;
}

// Returns the space that archives which are opened or reloaded can have.
uint64_t ChangingBytesMax(const MemoryPlan& plan) {
  return plan.listed_bytes + plan.reload_bytes + LendableCacheBytes(plan);
}

}  // namespace

absl::StatusOr<MemoryPlan> PlanMemory(std::optional<uint64_t> total_bytes,
                                      const std::vector<ArchiveNeed>& archives,
                                      bool may_grow, uint64_t withdrawals_bytes,
                                      uint64_t store_bytes,
                                      const ListedNeed& listed) {
  MemoryPlan plan;
  plan.store_bytes = store_bytes;
  plan.base_bytes = kBaseBytes + listed.count * kListedEntryBytes;
  plan.listed_bytes = listed.largest.memory_bytes;
  plan.requests_bytes = kRequestsBytes;
  plan.withdrawals_bytes = withdrawals_bytes;
  uint64_t largest_bytes = 0;
  for (const ArchiveNeed& archive : archives) {
    plan.archives_bytes += archive.memory_bytes;
    largest_bytes = std::max(largest_bytes, archive.memory_bytes);
  }
  // A rebuilt archive has often grown, a small one many times over.
  const uint64_t reload_bytes =
      largest_bytes + std::max(largest_bytes / 4, kReloadGrowthBytesMin);
  const uint64_t fixed_bytes = plan.base_bytes + plan.requests_bytes +
                               plan.withdrawals_bytes + plan.archives_bytes +
                               plan.store_bytes + plan.listed_bytes;
  const uint64_t needed_bytes = fixed_bytes + kInFlightBytesMin +
                                kBuffersBytesMin + kWorkspacesBytesMin +
                                kCacheBytesMin;
  plan.total_bytes = total_bytes.value_or(
      fixed_bytes + reload_bytes + kDefaultFreeBytes +
      // They get half of it.
      2 * std::min(MoreListedBytes(listed), kDefaultListedBytes));
  if (plan.total_bytes < needed_bytes) {
    std::string parts =
        absl::StrCat("server ", FormatByteSize(plan.base_bytes));
    for (const ArchiveNeed& archive : Largest(archives)) {
      absl::StrAppend(&parts, " + ", archive.name, " ",
                      FormatByteSize(archive.memory_bytes));
    }
    if (plan.listed_bytes > 0) {
      absl::StrAppend(&parts, " + the largest of --archives-list, ",
                      listed.largest.name, " ",
                      FormatByteSize(plan.listed_bytes));
    }
    if (withdrawals_bytes > 0) {
      absl::StrAppend(&parts, " + rules of --withdrawn ",
                      FormatByteSize(withdrawals_bytes));
    }
    if (store_bytes > 0) {
      absl::StrAppend(&parts, " + object stores ", FormatByteSize(store_bytes));
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "--memory ", FormatByteSizeExact(plan.total_bytes),
        " is too little: ", FormatByteSize(needed_bytes), " are needed (",
        parts, " + requests ", FormatByteSize(kRequestsBytes), " + answers ",
        FormatByteSize(kInFlightBytesMin), " + reads ",
        FormatByteSize(kBuffersBytesMin), " + decoders ",
        FormatByteSize(kWorkspacesBytesMin), " + cache ",
        FormatByteSize(kCacheBytesMin),
        "); give it more, or serve fewer archives"));
  }
  uint64_t free_bytes = plan.total_bytes - fixed_bytes;
  // Space for reloading must not reduce the rest below a working size.
  if (free_bytes >= reload_bytes + (needed_bytes - fixed_bytes)) {
    plan.reload_bytes =
        may_grow ? std::max(reload_bytes,
                            std::min(free_bytes / 4,
                                     free_bytes - (needed_bytes - fixed_bytes)))
                 : reload_bytes;
    free_bytes -= plan.reload_bytes;
  }
  const uint64_t more_listed_bytes =
      std::min({MoreListedBytes(listed), free_bytes / 2,
                free_bytes - (needed_bytes - fixed_bytes)});
  plan.listed_bytes += more_listed_bytes;
  free_bytes -= more_listed_bytes;
  plan.in_flight_bytes =
      std::clamp(free_bytes / 4, kInFlightBytesMin, kInFlightBytesMax);
  plan.buffers_bytes =
      std::clamp(free_bytes / 8, kBuffersBytesMin, kBuffersBytesMax);
  plan.workspaces_bytes =
      std::clamp(free_bytes / 16, kWorkspacesBytesMin, kWorkspacesBytesMax);
  plan.cache_bytes = free_bytes - plan.in_flight_bytes - plan.buffers_bytes -
                     plan.workspaces_bytes;
  return plan;
}

uint64_t LendableCacheBytes(const MemoryPlan& plan) {
  return plan.cache_bytes - std::min(plan.cache_bytes, kCacheBytesMin);
}

uint64_t CacheBytesBeside(const MemoryPlan& plan, uint64_t archives_bytes,
                          uint64_t connections_bytes) {
  const uint64_t space_bytes =
      plan.archives_bytes + plan.listed_bytes + plan.reload_bytes;
  const uint64_t excess_bytes =
      archives_bytes - std::min(archives_bytes, space_bytes);
  return plan.cache_bytes -
         std::min(LendableCacheBytes(plan), excess_bytes + connections_bytes);
}

absl::Status CheckFitsAlone(const MemoryPlan& plan, uint64_t memory_bytes) {
  const uint64_t alone_bytes = ChangingBytesMax(plan);
  return memory_bytes <= alone_bytes
             ? absl::OkStatus()
             : absl::FailedPreconditionError(absl::StrCat(
                   "it needs ", FormatByteSize(memory_bytes),
                   " of memory, and archives of --archives-list can have ",
                   FormatByteSize(alone_bytes),
                   "; restart with more --memory"));
}

absl::Status CheckReload(const MemoryPlan& plan, const ReloadNeed& need) {
  const uint64_t total_bytes = plan.archives_bytes + ChangingBytesMax(plan);
  const uint64_t held_bytes =
      need.served_bytes + need.replaced_bytes + need.connections_bytes;
  const uint64_t free_bytes = total_bytes - std::min(total_bytes, held_bytes);
  if (need.fresh_bytes <= free_bytes) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "it needs ", FormatByteSize(need.fresh_bytes),
      " of memory next to the archives that are held, ",
      FormatByteSize(free_bytes), " are free for that; ",
      need.replaced_bytes == 0
          ? "restart with more --memory"
          : "retry when the calls that read replaced archives have ended"));
}

std::string DescribePlan(const MemoryPlan& plan,
                         const std::vector<ArchiveNeed>& archives) {
  std::string text =
      absl::StrCat("memory: ", FormatByteSize(plan.total_bytes), "\n");
  text += Line("server itself", plan.base_bytes);
  for (const ArchiveNeed& archive : Largest(archives)) {
    text += Line(archive.name, archive.memory_bytes);
  }
  if (plan.listed_bytes > 0) {
    text += Line("archives of --archives-list", plan.listed_bytes);
  }
  if (plan.withdrawals_bytes > 0) {
    text += Line("rules of --withdrawn", plan.withdrawals_bytes);
  }
  text += Line("space to reload or add archives", plan.reload_bytes);
  if (plan.store_bytes > 0) {
    text += Line("transfers from object stores", plan.store_bytes);
  }
  text += Line("requests on their way, at most", plan.requests_bytes);
  text += Line("answers in flight, at most", plan.in_flight_bytes);
  text += Line("reads and decoding, at most", plan.buffers_bytes);
  text += Line("workspaces of decoders, at most", plan.workspaces_bytes);
  text += Line("block cache, at most", plan.cache_bytes);
  return text;
}

}  // namespace quire
