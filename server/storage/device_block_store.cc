// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/device_block_store.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

absl::Status CheckFetch(const BlockFetch& fetch) {
  const Extent& extent = fetch.extent;
  if (extent.size_bytes == 0 || fetch.decoder == nullptr ||
      extent.offset.value >
          static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) -
              extent.size_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("no block can be read from ", extent.size_bytes,
                     " bytes at offset ", extent.offset.value,
                     fetch.decoder == nullptr ? " without decoder" : ""));
  }
  return absl::OkStatus();
}

uint64_t WidenedMemorySizeBytes(uint64_t size_bytes) {
  return BufferPool::MemorySizeBytes(size_bytes + kDirectMarginBytes);
}

}  // namespace

DeviceBlockStore::DeviceBlockStore(const BlockStoreOptions& options,
                                   DeviceFactory open_device)
    : options_(options),
      reservable_size_bytes_(options.buffers_size_bytes_max -
                             options.buffers_size_bytes_max / 8),
      read_memory_size_bytes_(options.direct_io ? &WidenedMemorySizeBytes
                                                : &BufferPool::MemorySizeBytes),
      buffers_(BufferPool::Create(options.buffers_size_bytes_max / 8)),
      open_device_(std::move(open_device)),
      cache_({.capacity_size_bytes = options.cache_size_bytes}) {}

absl::StatusOr<std::unique_ptr<BlockStore>> DeviceBlockStore::Create(
    const BlockStoreOptions& options, DeviceFactory open_device) {
  if (options.pending_fetches_max == 0 || options.device_depth == 0) {
    return absl::InvalidArgumentError(
        "the block store's depth and number of pending fetches must be at "
        "least 1");
  }
  auto store = std::unique_ptr<DeviceBlockStore>(
      new DeviceBlockStore(options, std::move(open_device)));
  QUIRE_ASSIGN_OR_RETURN(store->decode_pool_,
                         DecodePool::Create(options.decode_threads));
  for (const DriveInfo& info : options.drives) {
    QUIRE_RETURN_IF_ERROR(store->AddDrive(info));
  }
  if (options.drives.empty()) {
    QUIRE_RETURN_IF_ERROR(store->AddDrive({}));
  }
  return store;
}

DeviceBlockStore::~DeviceBlockStore() {
  std::vector<std::unique_ptr<Flight>> cancelled;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    for (const auto& [request_id, run] : queued_) {
      run.front()->drive->scheduler->Cancel(request_id);
      for (const Flight* flight : run) {
        for (const Waiter& waiter : flight->waiters) {
          fetches_.erase(waiter.id);
        }
        stats_.cancelled_fetches += flight->waiters.size();
        const auto it = flights_.find(flight->fetch.key);
        cancelled.push_back(std::move(it->second));
        flights_.erase(it);
      }
    }
    queued_.clear();
    stats_.queued_fetches = 0;
  }
  for (const auto& flight : cancelled) {
    for (Waiter& waiter : flight->waiters) {
      waiter.done(absl::CancelledError("the block store is shutting down"));
    }
  }
  cancelled.clear();
  {
    MutexLock lock(&mutex_);
    while (std::any_of(drives_.begin(), drives_.end(), [](const auto& drive) {
      return !drive->readings.empty();
    })) {
      readings_ended_.Wait(&mutex_);
    }
  }
  // A reading may have ended before the Submit() that began it.
  while (starts_.load(std::memory_order_acquire) != 0) {
    std::this_thread::yield();
  }
  // The devices first: their threads feed the decode pool.
  for (const std::unique_ptr<Drive>& drive : drives_) {
    drive->device.reset();
  }
  decode_pool_.reset();
}

BlockStore::BlockPtr DeviceBlockStore::Lookup(const BlockKey& key) {
  return cache_.Find(key, BlockCache::Use::kDemand);
}

BlockStore::FetchId DeviceBlockStore::Fetch(BlockFetch fetch, Done done) {
  absl::StatusOr<BlockPtr> result =
      cache_.Find(fetch.key, BlockCache::UseOf(fetch.fetch_class));
  std::optional<FetchId> id;
  if (*result == nullptr) {
    Readings readings;
    {
      MutexLock lock(&mutex_);
      BlockRun run;
      id = Begin(fetch, done, result, run);
      Queue(run);
      readings = Plan();
    }
    Start(readings);
  }
  if (id.has_value()) {
    return *id;
  }
  done(std::move(result));
  return 0;
}

std::vector<BlockStore::FetchId> DeviceBlockStore::FetchAll(
    std::vector<FetchItem> items) {
  std::vector<FetchId> ids;
  ids.reserve(items.size());
  for (size_t i = 0; i < items.size(); i += kFetchesPerStep) {
    FetchSome(std::span(items).subspan(
                  i, std::min(kFetchesPerStep, items.size() - i)),
              ids);
  }
  return ids;
}

void DeviceBlockStore::FetchSome(std::span<FetchItem> items,
                                 std::vector<FetchId>& ids) {
  std::vector<absl::StatusOr<BlockPtr>> results;
  results.reserve(items.size());
  for (const FetchItem& item : items) {
    results.emplace_back(
        cache_.Find(item.fetch.key, BlockCache::UseOf(item.fetch.fetch_class)));
  }
  const size_t first_id = ids.size();
  Readings readings;
  {
    MutexLock lock(&mutex_);
    BlockRun run;
    for (size_t i = 0; i < items.size(); ++i) {
      ids.push_back(*results[i] != nullptr
                        ? 0
                        : Begin(items[i].fetch, items[i].done, results[i], run)
                              .value_or(0));
    }
    Queue(run);
    readings = Plan();
  }
  Start(readings);
  for (size_t i = 0; i < items.size(); ++i) {
    if (ids[first_id + i] == 0) {
      items[i].done(std::move(results[i]));
    }
  }
}

std::optional<BlockStore::FetchId> DeviceBlockStore::Begin(
    BlockFetch& fetch, Done& done, absl::StatusOr<BlockPtr>& result,
    BlockRun& run) {
  const auto it = flights_.find(fetch.key);
  if (it == flights_.end()) {
    // A flight may have ended since the caller looked; it fills the cache
    // before it goes.
    BlockPtr cached =
        cache_.Find(fetch.key, BlockCache::UseOf(fetch.fetch_class));
    if (cached != nullptr) {
      result = std::move(cached);
      return std::nullopt;
    }
  }
  ++stats_.cache_misses;
  if (stopping_) {
    result = absl::CancelledError("the block store is shutting down");
    return std::nullopt;
  }
  if (fetches_.size() >= options_.pending_fetches_max) {
    result = absl::ResourceExhaustedError(
        absl::StrCat("the block store is busy: ", fetches_.size(),
                     " fetches wait; try again later"));
    return std::nullopt;
  }
  if (it != flights_.end()) {
    ++stats_.joined_fetches;
    // It may be of this very run, and a run that is queued can be split.
    Queue(run);
    const FetchId id = next_id_++;
    Join(*it->second, id, fetch, done);
    return id;
  }
  if (absl::Status status = CheckFetch(fetch); !status.ok()) {
    result = std::move(status);
    return std::nullopt;
  }
  if (!MayJoin(run, fetch)) {
    Queue(run);
  }
  const FetchId id = next_id_++;
  auto flight = std::make_unique<Flight>();
  flight->fetch = std::move(fetch);
  run.push_back(flight.get());
  Join(*flight, id, flight->fetch, done);
  flights_.emplace(flight->fetch.key, std::move(flight));
  return id;
}

void DeviceBlockStore::Join(Flight& flight, FetchId id, const BlockFetch& fetch,
                            Done& done) {
  const FetchClass fetch_class = fetch.fetch_class;
  flight.waiters.push_back({id, fetch.takes_packed, std::move(done)});
  fetches_.emplace(id, &flight);
  if (!flight.reading) {
    ++stats_.queued_fetches;
  }
  if (fetch_class < flight.fetch.fetch_class) {
    if (flight.reading) {
      flight.fetch.fetch_class = fetch_class;
    } else {
      Promote(flight, fetch_class);
    }
  }
}

void DeviceBlockStore::Cancel(FetchId id) {
  Done done;
  std::unique_ptr<Flight> abandoned;
  {
    MutexLock lock(&mutex_);
    const auto fetch = fetches_.find(id);
    if (fetch == fetches_.end() || fetch->second->reading) {
      return;
    }
    Flight& flight = *fetch->second;
    fetches_.erase(fetch);
    const auto waiter =
        std::find_if(flight.waiters.begin(), flight.waiters.end(),
                     [id](const Waiter& w) { return w.id == id; });
    done = std::move(waiter->done);
    flight.waiters.erase(waiter);
    --stats_.queued_fetches;
    ++stats_.cancelled_fetches;
    if (flight.waiters.empty()) {
      Unqueue(flight);
      const auto it = flights_.find(flight.fetch.key);
      abandoned = std::move(it->second);
      flights_.erase(it);
    }
  }
  done(absl::CancelledError("the fetch was cancelled"));
}

void DeviceBlockStore::Run(std::function<void()> task) {
  std::vector<DecodePool::Task> tasks;
  tasks.push_back(std::move(task));
  decode_pool_->Add(tasks);
}

uint64_t DeviceBlockStore::WorkSizeBytes(const BlockFetch& fetch) {
  const uint64_t size_bytes = BufferPool::MemorySizeBytes(fetch.raw_size_bytes);
  return fetch.decoder->packs() ? 2 * size_bytes : size_bytes;
}

BlockStoreStats DeviceBlockStore::Stats() const {
  const BlockCache::Stats cache = cache_.GetStats();
  MutexLock lock(&mutex_);
  BlockStoreStats stats = stats_;
  stats.cache_hits = cache.hits;
  stats.cache_evictions = cache.evictions;
  stats.cache_size_bytes = cache.size_bytes;
  stats.cache_blocks = cache.blocks;
  for (const std::unique_ptr<Drive>& drive : drives_) {
    stats.drives.push_back(drive->stats);
    DriveStats& of_drive = stats.drives.back();
    of_drive.queued_requests = drive->scheduler->pending_requests();
    of_drive.reads_in_flight = drive->scheduler->reads_in_flight();
    stats.device_reads += of_drive.reads;
    stats.device_read_bytes += of_drive.read_bytes;
    stats.device_errors += of_drive.errors;
    stats.device_reads_in_flight += of_drive.reads_in_flight;
  }
  stats.buffers_size_bytes = reserved_size_bytes_;
  return stats;
}

}  // namespace quire
