// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/fetch/block_run.h"

#include <algorithm>
#include <cstdint>

namespace quire {
namespace {

// Small enough that one run does not occupy a hard disk for long, and that
// distances between runs show the density of requests (the scheduler's
// dense_gap_size_bytes). A read may serve several runs.
constexpr uint64_t kRunSizeBytesMax = 128 << 10;
// Minimum number of runs that fit the memory for reads: a request served alone
// may exceed it, and should be no larger than necessary.
constexpr uint64_t kRunsInMemoryMin = 16;

uint64_t EndOf(const Extent& extent) {
  return extent.offset.value + extent.size_bytes;
}

}  // namespace

bool MayJoin(const BlockRun& run, const BlockFetch& fetch,
             const ReadMemory& memory) {
  if (run.empty()) {
    return true;
  }
  const BlockFetch& first = run.front()->fetch;
  const Extent& last = run.back()->fetch.extent;
  if (fetch.extent.fd != last.fd || fetch.extent.offset.value != EndOf(last) ||
      fetch.extent.direct_fd != last.direct_fd ||
      fetch.fetch_class != first.fetch_class ||
      fetch.client_id != first.client_id || fetch.decoder != first.decoder ||
      fetch.placement != first.placement) {
    return false;
  }
  const uint64_t end = EndOf(fetch.extent);
  const uint64_t size_bytes = end - first.extent.offset.value;
  // Assumes that all are as large as the larger of these two.
  const uint64_t memory_size_bytes =
      memory.buffer_size()(size_bytes) +
      (run.size() + 1) * std::max(WorkSizeBytes(first), WorkSizeBytes(fetch));
  return size_bytes <= kRunSizeBytesMax &&
         memory_size_bytes <= memory.size_bytes_max() / kRunsInMemoryMin &&
         (fetch.placement == nullptr ||
          end <= fetch.placement->Find(first.extent.offset).end.value);
}

ScheduledRequest RequestFor(const BlockRun& run,
                            const std::string& drive_name) {
  const BlockFetch& first = run.front()->fetch;
  const Extent& last = run.back()->fetch.extent;
  ScheduledRequest request{
      .address = {.fd = first.extent.fd, .offset = first.extent.offset},
      .size_bytes =
          static_cast<uint32_t>(EndOf(last) - first.extent.offset.value),
      .fetch_class = first.fetch_class,
      .client_id = first.client_id};
  for (const InFlightBlock* block : run) {
    request.memory_size_bytes += WorkSizeBytes(block->fetch);
  }
  if (first.placement != nullptr &&
      first.placement->place.drive.name == drive_name) {
    const ExtentMap::Place place = first.placement->Find(first.extent.offset);
    request.address.physical = place.physical;
    request.contiguous_end = place.end;
  }
  return request;
}

}  // namespace quire
