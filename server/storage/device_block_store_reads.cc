// SPDX-License-Identifier: GPL-3.0-or-later
//
// The second half of DeviceBlockStore: from the scheduler to the end of a
// flight.
#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/storage/device_block_store.h"

namespace quire {
namespace {

absl::Status WithBlock(const absl::Status& status, BlockAddress block) {
  return absl::Status(
      status.code(),
      absl::StrCat("segment ", block.segment_index, ", block ",
                   block.block_index, ": ", std::string(status.message())));
}

}  // namespace

absl::Status DeviceBlockStore::NoMemory(uint64_t size_bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("no memory for a block buffer of ", size_bytes, " bytes"));
}

uint64_t DeviceBlockStore::StartOf(const BlockFetch& fetch,
                                   const DeviceAddress& reading) {
  return fetch.extent.offset.value - reading.offset.value;
}

// Drives take turns, a read each, so that where memory is short the quickest
// does not get it all. Whoever lacks memory keeps the turn until enough is
// free.
DeviceBlockStore::Readings DeviceBlockStore::Plan() {
  Readings readings;
  if (queued_.empty()) {
    return readings;
  }
  const auto busy_count =
      std::count_if(drives_.begin(), drives_.end(), [](const auto& drive) {
        return drive->scheduler->pending_requests() > 0;
      });
  const size_t reads_max = busy_count > 1 ? 1 : options_.device_depth;
  size_t idle_count = 0;
  while (idle_count < drives_.size()) {
    const size_t count_before = readings.size();
    if (!PlanDrive(*drives_[turn_], reads_max, readings)) {
      break;
    }
    idle_count = readings.size() == count_before ? idle_count + 1 : 0;
    turn_ = (turn_ + 1) % drives_.size();
  }
  if (!readings.empty()) {
    starts_.fetch_add(1, std::memory_order_relaxed);
  }
  return readings;
}

bool DeviceBlockStore::PlanDrive(Drive& drive, size_t reads_max,
                                 Readings& readings) {
  const size_t in_flight = drive.scheduler->reads_in_flight();
  if (drive.scheduler->pending_requests() == 0 ||
      in_flight >= options_.device_depth) {
    return true;
  }
  const DispatchLimits limits{
      .reads_max = static_cast<uint32_t>(
          std::min(reads_max, options_.device_depth - in_flight)),
      .memory_size_bytes_max =
          reservable_size_bytes_ -
          std::min(reservable_size_bytes_, reserved_size_bytes_),
      .at_least_one = reserved_size_bytes_ == 0};
  for (const ScheduledRead& read : drive.scheduler->Dispatch(Now(), limits)) {
    readings.push_back(MakeReading(drive, read));
  }
  return !drive.scheduler->lacks_memory();
}

DeviceBlockStore::ReadingPtr DeviceBlockStore::MakeReading(
    Drive& drive, const ScheduledRead& read) {
  auto reading = std::make_shared<Reading>();
  reading->drive = &drive;
  reading->id = read.id;
  reading->address = read.address;
  reading->size_bytes = read.size_bytes;
  reading->urgent = read.urgent;
  reading->buffer_memory_size_bytes = read_memory_size_bytes_(read.size_bytes);
  for (const uint64_t request_id : read.request_ids) {
    const auto it = queued_.find(request_id);
    reading->flights.insert(reading->flights.end(), it->second.begin(),
                            it->second.end());
    queued_.erase(it);
  }
  for (Flight* flight : reading->flights) {
    flight->reading = true;
    stats_.queued_fetches -= flight->waiters.size();
  }
  // Runs overlap where two sources have the same bytes.
  std::sort(reading->flights.begin(), reading->flights.end(),
            [](const Flight* a, const Flight* b) {
              return a->fetch.extent.offset < b->fetch.extent.offset;
            });
  reading->operation_end = reading->flights.size();
  reading->flights_left = reading->flights.size();
  Widen(*reading);
  reserved_size_bytes_ += read.memory_size_bytes;
  stats_.queue_wait_us += static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(read.waited)
          .count());
  drive.readings.emplace(reading->id, reading);
  return reading;
}

void DeviceBlockStore::Start(const Readings& readings) {
  absl::InlinedVector<DeviceRead, 1> operations;
  std::vector<DecodePool::Task> tasks;
  for (size_t i = 0; i < readings.size(); ++i) {
    const ReadingPtr& reading = readings[i];
    Drive& drive = *reading->drive;
    reading->buffer = buffers_->Allocate(reading->size_bytes);
    if (reading->buffer) {
      operations.push_back({.id = reading->id,
                            .fd = reading->direct_fd >= 0 ? reading->direct_fd
                                                          : reading->address.fd,
                            .offset = reading->address.offset,
                            .urgent = reading->urgent,
                            .buffer = reading->buffer.bytes()});
    } else {
      // Not from here: what is planned next may fail as well, and so on.
      tasks.push_back([this, &drive, id = reading->id,
                       status = NoMemory(reading->size_bytes)] {
        DeviceResult result{.id = id, .size_bytes = 0, .status = status};
        OnReadsDone(drive, {&result, 1});
      });
    }
    const bool is_last_of_drive =
        i + 1 == readings.size() || readings[i + 1]->drive != &drive;
    if (is_last_of_drive && !operations.empty()) {
      drive.device->Submit({operations.data(), operations.size()});
      operations.clear();
    }
  }
  if (!tasks.empty()) {
    decode_pool_->Add(tasks);
  }
  if (!readings.empty()) {
    // The devices may be gone from here on.
    starts_.fetch_sub(1, std::memory_order_release);
  }
}

void DeviceBlockStore::Widen(Reading& reading) const {
  const Extent& extent = reading.flights.front()->fetch.extent;
  if (!options_.direct_io || extent.direct_fd < 0) {
    return;
  }
  const uint64_t mask = extent.direct_alignment_bytes - 1;
  const uint64_t start = reading.address.offset.value;
  const uint64_t end = (start + reading.size_bytes + mask) & ~mask;
  reading.direct_fd = extent.direct_fd;
  reading.address.offset.value = start & ~mask;
  reading.size_bytes =
      static_cast<uint32_t>(end - reading.address.offset.value);
}

uint64_t DeviceBlockStore::NeededSizeBytes(const Reading& reading) {
  const BlockFetch& last = reading.flights[reading.operation_end - 1]->fetch;
  return StartOf(last, reading.address) + last.extent.size_bytes -
         reading.operation_start;
}

DeviceRead DeviceBlockStore::RepeatOf(Reading& reading) {
  const BlockFetch& fetch = reading.flights[reading.done_count]->fetch;
  reading.operation_start = StartOf(fetch, reading.address);
  return {.id = reading.id,
          .fd = reading.address.fd,
          .offset = fetch.extent.offset,
          .buffer = reading.buffer.bytes().subspan(reading.operation_start,
                                                   fetch.extent.size_bytes)};
}

void DeviceBlockStore::OnReadsDone(Drive& drive,
                                   std::span<DeviceResult> results) {
  std::vector<DecodePool::Task> tasks;
  std::vector<DeviceRead> repeats;
  Readings readings;
  {
    MutexLock lock(&mutex_);
    for (const DeviceResult& result : results) {
      const auto it = drive.readings.find(result.id);
      // Without memory for its buffer it never came to the device.
      if (!absl::IsResourceExhausted(result.status)) {
        ++drive.stats.reads;
        drive.stats.read_bytes += result.size_bytes;
        // A direct read's last page may lie across the end of the file.
        drive.stats.errors +=
            result.status.ok() ||
                    result.size_bytes >= NeededSizeBytes(*it->second)
                ? 0
                : 1;
      }
      if (TakeResult(it->second, result, tasks)) {
        drive.scheduler->Complete(Now(), result.id);
        drive.readings.erase(it);
      } else {
        repeats.push_back(RepeatOf(*it->second));
      }
    }
    if (stopping_ && drive.readings.empty()) {
      readings_ended_.NotifyAll();
    }
    readings = Plan();
  }
  if (!repeats.empty()) {
    drive.device->Submit(repeats);
  }
  Start(readings);
  decode_pool_->Add(tasks);
}

bool DeviceBlockStore::TakeResult(const ReadingPtr& reading,
                                  const DeviceResult& result,
                                  std::vector<DecodePool::Task>& tasks) {
  // The first operation covers the whole reading, later ones a block each.
  const bool is_joint = reading->operation_end - reading->done_count > 1 ||
                        reading->direct_fd >= 0;
  const uint64_t start = reading->operation_start;
  std::vector<ReadBlock> blocks;
  for (size_t& i = reading->done_count; i < reading->operation_end; ++i) {
    Flight* flight = reading->flights[i];
    const BlockFetch& fetch = flight->fetch;
    absl::Status status;
    if (StartOf(fetch, reading->address) - start + fetch.extent.size_bytes >
        result.size_bytes) {
      // An error of the device may be a neighbour's, or gone the next time. Not
      // directly: pages that neighbours share are being decoded.
      if (absl::IsUnavailable(result.status) &&
          (is_joint || !flight->repeated)) {
        MarkRepeated(*flight);
        reading->direct_fd = -1;
        reading->operation_end = i + 1;
        AddTasks(reading, blocks, tasks);
        return false;
      }
      status = WithBlock(result.status, fetch.key.block);
    }
    const BlockCache::Use use = BlockCache::UseOf(fetch.fetch_class);
    // A scan leaves its blocks to chance: not worth the work.
    const bool pack =
        fetch.decoder->packs() &&
        (use == BlockCache::Use::kDemand ||
         std::any_of(flight->waiters.begin(), flight->waiters.end(),
                     [](const Waiter& waiter) { return waiter.takes_packed; }));
    blocks.push_back({flight, std::move(status), pack, use});
  }
  AddTasks(reading, blocks, tasks);
  if (reading->done_count < reading->flights.size()) {
    reading->operation_end = reading->done_count + 1;
    return false;
  }
  return true;
}

}  // namespace quire
