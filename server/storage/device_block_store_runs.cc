// SPDX-License-Identifier: GPL-3.0-or-later
//
// Of DeviceBlockStore, the blocks that the scheduler has as one request.
#include <algorithm>
#include <cstdlib>

#include "server/storage/device_block_store.h"

namespace quire {
namespace {

// So little that a drive with an arm is not kept long by one of them, and that
// their distances still show how densely requests lie (the scheduler's
// dense_gap_size_bytes); reads may serve several.
constexpr uint64_t kRunSizeBytesMax = 128 << 10;
// Of the memory for reads: requests that are served alone may exceed it, and
// are not to be larger than they must.
constexpr uint64_t kRunsInMemoryMin = 16;

uint64_t EndOf(const Extent& extent) {
  return extent.offset.value + extent.size_bytes;
}

}  // namespace

ScheduledRequest DeviceBlockStore::RequestFor(const BlockRun& run,
                                              Drive*& drive) const {
  const BlockFetch& first = run.front()->fetch;
  const Extent& last = run.back()->fetch.extent;
  ScheduledRequest request{
      .address = {.fd = first.extent.fd, .offset = first.extent.offset},
      .size_bytes =
          static_cast<uint32_t>(EndOf(last) - first.extent.offset.value),
      .fetch_class = first.fetch_class,
      .client_id = first.client_id};
  for (const Flight* flight : run) {
    request.memory_size_bytes += WorkSizeBytes(flight->fetch);
  }
  drive = first.placement == nullptr
              ? nullptr
              : FindDrive(first.placement->place.drive.name);
  if (drive == nullptr) {
    drive = drives_.front().get();
    return request;
  }
  const ExtentMap::Place place = first.placement->Find(first.extent.offset);
  request.address.physical = place.physical;
  request.contiguous_end = place.end;
  return request;
}

bool DeviceBlockStore::MayJoin(const BlockRun& run,
                               const BlockFetch& fetch) const {
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
  // As if all were as large as the larger of these two.
  const uint64_t memory_size_bytes =
      read_memory_size_bytes_(size_bytes) +
      (run.size() + 1) * std::max(WorkSizeBytes(first), WorkSizeBytes(fetch));
  return size_bytes <= kRunSizeBytesMax &&
         memory_size_bytes <= reservable_size_bytes_ / kRunsInMemoryMin &&
         (fetch.placement == nullptr ||
          end <= fetch.placement->Find(first.extent.offset).end.value);
}

void DeviceBlockStore::Queue(BlockRun& run) {
  if (run.empty()) {
    return;
  }
  Drive* drive = nullptr;
  ScheduledRequest request = RequestFor(run, drive);
  request.id = next_id_++;
  // There are at most as many runs as fetches, and of those no more than the
  // scheduler takes.
  if (!drive->scheduler->Push(Now(), request).ok()) {
    std::abort();
  }
  for (Flight* flight : run) {
    flight->drive = drive;
    flight->request_id = request.id;
  }
  queued_.emplace(request.id, std::move(run));
  run.clear();
}

void DeviceBlockStore::Unqueue(Flight& flight) {
  flight.drive->scheduler->Cancel(flight.request_id);
  const auto it = queued_.find(flight.request_id);
  const BlockRun run = std::move(it->second);
  queued_.erase(it);
  const auto at = std::find(run.begin(), run.end(), &flight);
  BlockRun before(run.begin(), at);
  Queue(before);
  BlockRun behind(at + 1, run.end());
  Queue(behind);
}

void DeviceBlockStore::Promote(Flight& flight, FetchClass fetch_class) {
  if (queued_.find(flight.request_id)->second.size() == 1) {
    flight.fetch.fetch_class = fetch_class;
    flight.drive->scheduler->Promote(flight.request_id, fetch_class);
    return;
  }
  Unqueue(flight);
  flight.fetch.fetch_class = fetch_class;
  BlockRun run = {&flight};
  Queue(run);
}

}  // namespace quire
