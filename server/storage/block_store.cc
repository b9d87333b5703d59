// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/block_store.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/storage/fetch/decode_task.h"
#include "server/storage/model/drive_presets.h"
#include "server/storage/model/modelled_device.h"

namespace quire {
namespace {

// A shorter wait is not worth a timer; a longer one would idle a device that
// the decoders could soon need.
constexpr std::chrono::microseconds kDevicePatienceMin{50};
constexpr std::chrono::microseconds kDevicePatienceMax{400};
// If clients take turns, a result may be decoded before those that wait.
constexpr std::chrono::microseconds kDevicePatienceInTurnsMax{100};

SchedulerTime Now() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

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
  if (fetch.part_size_bytes == 0 || PartCount(fetch) > kBlockPartsMax ||
      fetch.key.part >= std::max(1U, PartCount(fetch))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there is no part ", fetch.key.part, " of ", fetch.part_size_bytes,
        " bytes in a block of ", fetch.raw_size_bytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<BlockStore>> BlockStore::Create(
    const BlockStoreOptions& options) {
  // The store keeps this for drives that are added after `options` are
  // destroyed.
  const DeviceFactory open_engine =
      [engine = options.engine,
       depth = options.device_depth](Device::Done done) {
        return OpenDevice(engine, depth, std::move(done));
      };
  if (options.device_model.empty()) {
    return Create(options, open_engine);
  }
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<DriveModel> drive,
                         MakeDriveModel(options.device_model));
  BlockStoreOptions modelled = options;
  modelled.drives = {{.name = "modelled",
                      .kind = drive->rotational() ? DriveKind::kRotational
                                                  : DriveKind::kSolidState,
                      .has_priorities = drive->has_priorities()}};
  return Create(
      modelled, [&](Device::Done done) -> absl::StatusOr<OpenedDevice> {
        OpenedDevice opened;
        QUIRE_ASSIGN_OR_RETURN(
            opened.device,
            ModelledDevice::Open(std::move(drive), options.device_model,
                                 open_engine, std::move(done)));
        return opened;
      });
}

absl::StatusOr<std::unique_ptr<BlockStore>> BlockStore::Create(
    const BlockStoreOptions& options, DeviceFactory open_device) {
  if (options.pending_fetches_max == 0 || options.device_depth == 0) {
    return absl::InvalidArgumentError(
        "the block store's depth and number of pending fetches must be at "
        "least 1");
  }
  auto store = std::unique_ptr<BlockStore>(
      new BlockStore(options, std::move(open_device)));
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

BlockStore::BlockStore(const BlockStoreOptions& options,
                       DeviceFactory open_device)
    : options_(options),
      open_device_(std::move(open_device)),
      buffers_(BufferPool::Create(options.cache_size_bytes +
                                  options.buffers_size_bytes_max +
                                  options.callers_size_bytes_max)),
      cache_({.capacity_size_bytes = options.cache_size_bytes}),
      memory_(options.buffers_size_bytes_max, options.direct_io) {}

BlockStore::~BlockStore() {
  std::vector<std::unique_ptr<InFlightBlock>> cancelled;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    drives_.DequeueAll();
    cancelled = in_flight_.CancelQueued();
  }
  for (const std::unique_ptr<InFlightBlock>& block : cancelled) {
    for (InFlightBlock::Waiter& waiter : block->waiters) {
      waiter.done(absl::CancelledError("the block store is shutting down"));
    }
  }
  cancelled.clear();
  {
    // A read may have ended before the StartPlanned() that began it.
    MutexLock lock(&mutex_);
    while (drives_.has_reads() || unstarted_plans_ > 0) {
      reads_ended_.Wait(&mutex_);
    }
  }
  // Before the decode pool, to which their threads add tasks.
  drives_.CloseDevices();
}

BlockStore::BlockPtr BlockStore::Lookup(const BlockKey& key,
                                        FetchClass fetch_class) {
  return cache_.Find(key, BlockCache::UseOf(fetch_class));
}

void BlockStore::ResizeCache(uint64_t size_bytes) {
  // First, so that evicted blocks are not kept.
  buffers_->SetSizeMax(size_bytes + options_.buffers_size_bytes_max +
                       options_.callers_size_bytes_max);
  cache_.Resize(size_bytes);
}

BlockStore::FetchId BlockStore::Fetch(BlockFetch fetch, Done done) {
  absl::StatusOr<BlockPtr> result = BlockPtr();
  std::optional<FetchId> id;
  DriveReads reads;
  {
    MutexLock lock(&mutex_);
    const SchedulerTime now = Now();
    BlockRun run;
    id = Begin(now, fetch, done, result, run);
    Enqueue(now, run);
    reads = Plan(now);
  }
  StartPlanned(reads);
  if (id.has_value()) {
    return *id;
  }
  done(std::move(result));
  return 0;
}

std::vector<BlockStore::FetchId> BlockStore::FetchAll(
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

void BlockStore::FetchSome(std::span<FetchItem> items,
                           std::vector<FetchId>& ids) {
  // Results of the fetches that ended at once.
  std::vector<std::pair<size_t, absl::StatusOr<BlockPtr>>> results;
  DriveReads reads;
  {
    MutexLock lock(&mutex_);
    const SchedulerTime now = Now();
    BlockRun run;
    for (size_t i = 0; i < items.size(); ++i) {
      absl::StatusOr<BlockPtr> result = BlockPtr();
      const std::optional<FetchId> id =
          Begin(now, items[i].fetch, items[i].done, result, run);
      ids.push_back(id.value_or(0));
      if (!id.has_value()) {
        results.emplace_back(i, std::move(result));
      }
    }
    Enqueue(now, run);
    reads = Plan(now);
  }
  StartPlanned(reads);
  for (auto& [index, result] : results) {
    items[index].done(std::move(result));
  }
}

std::optional<BlockStore::FetchId> BlockStore::Begin(
    SchedulerTime now, BlockFetch& fetch, Done& done,
    absl::StatusOr<BlockPtr>& result, BlockRun& run) {
  InFlightBlock* in_flight = in_flight_.Find(fetch.key);
  const bool has_parts = fetch.part_size_bytes < fetch.raw_size_bytes;
  // One part may be cached while another is in flight.
  if (in_flight == nullptr || has_parts) {
    // A block is cached before it is removed from the table: this look-up finds
    // blocks decoded since the caller's own.
    BlockPtr cached =
        cache_.Find(fetch.key, BlockCache::UseOf(fetch.fetch_class));
    if (cached != nullptr) {
      result = std::move(cached);
      return std::nullopt;
    }
  }
  if (fetch.fetch_class != FetchClass::kScrub) {
    ++stats_.cache_misses;
  }
  if (stopping_) {
    result = absl::CancelledError("the block store is shutting down");
    return std::nullopt;
  }
  if (in_flight_.fetch_count() >= options_.pending_fetches_max) {
    result = absl::ResourceExhaustedError(
        absl::StrCat("the block store is busy: ", in_flight_.fetch_count(),
                     " fetches wait; try again later"));
    return std::nullopt;
  }
  if (in_flight != nullptr) {
    // The block may be in this very run, and an enqueued run can be split. A
    // part leaves the run of its block unchanged.
    if (!has_parts || fetch.fetch_class < in_flight->fetch.fetch_class) {
      Enqueue(now, run);
    }
    return Join(now, *in_flight, fetch, done);
  }
  if (absl::Status status = CheckFetch(fetch); !status.ok()) {
    result = std::move(status);
    return std::nullopt;
  }
  if (!MayJoin(run, fetch, memory_)) {
    Enqueue(now, run);
  }
  InFlightBlock& begun = in_flight_.Begin(std::move(fetch));
  begun.all_parts = begun.fetch.all_parts;
  run.push_back(&begun);
  return in_flight_.Join(begun, begun.fetch, std::move(done), now);
}

BlockStore::FetchId BlockStore::Join(SchedulerTime now, InFlightBlock& block,
                                     const BlockFetch& fetch, Done& done) {
  const FetchId id = in_flight_.Join(block, fetch, std::move(done), now);
  block.all_parts |= fetch.all_parts;
  if (fetch.fetch_class < block.fetch.fetch_class) {
    if (block.at_device) {
      block.fetch.fetch_class = fetch.fetch_class;
    } else {
      block.queue->Promote(now, block, fetch.fetch_class);
    }
  }
  return id;
}

void BlockStore::Enqueue(SchedulerTime now, BlockRun& run) {
  if (!run.empty()) {
    drives_.QueueOf(run.front()->fetch.placement.get()).Enqueue(now, run);
  }
}

void BlockStore::Cancel(FetchId id) {
  std::optional<InFlightTable::Withdrawn> withdrawn;
  {
    MutexLock lock(&mutex_);
    withdrawn = in_flight_.Cancel(id);
    if (withdrawn.has_value() && withdrawn->abandoned != nullptr) {
      InFlightBlock& block = *withdrawn->abandoned;
      block.queue->Dequeue(Now(), block);
    }
  }
  if (withdrawn.has_value()) {
    withdrawn->done(absl::CancelledError("the fetch was cancelled"));
  }
}

DriveReads BlockStore::Plan(SchedulerTime now) {
  DriveReads reads = drives_.Plan(now);
  unstarted_plans_ += reads.empty() ? 0 : 1;
  return reads;
}

void BlockStore::StartPlanned(const DriveReads& reads) {
  if (reads.empty()) {
    return;
  }
  StartReads(reads, *buffers_);
  MutexLock lock(&mutex_);
  --unstarted_plans_;
  if (stopping_) {
    reads_ended_.NotifyAll();
  }
}

void BlockStore::OnDeviceResults(DriveQueue& queue,
                                 std::span<DeviceResult> results) {
  std::vector<DecodePool::Task> tasks;
  std::vector<DeviceRead> repeats;
  DriveReads reads;
  {
    MutexLock lock(&mutex_);
    const SchedulerTime now = Now();
    for (const DeviceResult& result : results) {
      DriveQueue::Ended ended = queue.TakeResult(now, result, repeats);
      for (const ReadBlock& read : ended.blocks) {
        read.block->read_ended = now;
      }
      AddDecodeTasks(ended.read, ended.blocks, tasks);
    }
    if (stopping_ && !queue.has_reads()) {
      reads_ended_.NotifyAll();
    }
    reads = Plan(now);
  }
  if (!repeats.empty()) {
    queue.Submit(repeats);
  }
  StartPlanned(reads);
  decode_pool_->Add(tasks);
}

void BlockStore::AddDecodeTasks(const DriveReadPtr& read,
                                std::span<ReadBlock> blocks,
                                std::vector<DecodePool::Task>& tasks) {
  const size_t task_blocks = std::clamp<size_t>(
      blocks.size() / decode_pool_->thread_count(), 1, DecodeTask::kBlocksMax);
  while (!blocks.empty()) {
    const std::span<ReadBlock> part =
        blocks.first(std::min(blocks.size(), task_blocks));
    blocks = blocks.subspan(part.size());
    DecodePool::Task task{.run = {},
                          .client_id = part.front().block->fetch.client_id};
    for (const ReadBlock& block : part) {
      const BlockFetch& fetch = block.block->fetch;
      task.cost += std::min<uint64_t>(
          uint64_t{fetch.part_size_bytes} * block.parts.size(),
          fetch.raw_size_bytes);
    }
    task.run = [this, read,
                read_blocks = std::vector<ReadBlock>(
                    std::make_move_iterator(part.begin()),
                    std::make_move_iterator(part.end()))] {
      RunDecodeTask(*read, read_blocks);
    };
    tasks.push_back(std::move(task));
  }
}

void BlockStore::RunDecodeTask(DriveRead& read,
                               std::span<const ReadBlock> blocks) {
  DecodeTask task(read, blocks, *buffers_, cache_);
  task.Decode();
  DriveReads reads;
  SchedulerTime now;
  {
    MutexLock lock(&mutex_);
    now = Now();
    for (size_t i = 0; i < blocks.size(); ++i) {
      InFlightBlock& block = *blocks[i].block;
      BlockOutcome& outcome = task.outcomes()[i];
      if (outcome.is_damaged && !stopping_ && in_flight_.ReturnToQueue(block)) {
        // A bit may have been flipped in transit: read the block alone.
        block.queue->Invalidate(block.fetch);
        BlockRun run = {&block};
        Enqueue(now, run);
        continue;
      }
      const bool succeeded = outcome.status.ok();
      CountDecoded(block.fetch, outcome);
      stats_.decode_failures +=
          !succeeded &&
                  (blocks[i].status.ok() || absl::IsDataLoss(blocks[i].status))
              ? 1
              : 0;
      if (!succeeded || stopping_) {
        outcome.ended = in_flight_.EndAll(block, succeeded);
        continue;
      }
      outcome.ended = in_flight_.End(block, blocks[i].parts);
      if (outcome.ended.get() != &block) {
        BlockRun run = {&block};
        Enqueue(now, run);
      }
    }
    memory_.Release(task.freed_size_bytes());
    reads = Plan(now);
  }
  StartPlanned(reads);
  task.Answer(now);
}

void BlockStore::CountDecoded(const BlockFetch& fetch,
                              const BlockOutcome& outcome) {
  if (!outcome.status.ok()) {
    return;
  }
  uint64_t size_bytes = 0;
  for (const BlockOutcome::Part& part : outcome.parts) {
    size_bytes += part.text->bytes().size();
  }
  stats_.blocks_decoded += outcome.parts.size();
  stats_.decoded_bytes += size_bytes;
  ++(size_bytes == fetch.raw_size_bytes ? stats_.whole_decodes
                                        : stats_.partial_decodes);
}

absl::Status BlockStore::AddDrive(const DriveInfo& drive) {
  return AddDrive(drive, open_device_, options_.device_depth);
}

absl::Status BlockStore::AddDrive(const DriveInfo& drive,
                                  const DeviceFactory& open_device,
                                  uint32_t depth) {
  InFlightTable* in_flight = nullptr;
  ReadMemory* memory = nullptr;
  {
    MutexLock lock(&mutex_);
    // A modelled drive is the only one, whatever the files lie on.
    const bool is_modelled = !options_.device_model.empty();
    if (drives_.Find(drive.name) != nullptr ||
        (is_modelled && !drives_.empty())) {
      return absl::OkStatus();
    }
    // The queue uses them under the lock.
    in_flight = &in_flight_;
    memory = &memory_;
  }
  QUIRE_ASSIGN_OR_RETURN(
      std::unique_ptr<DriveQueue> queue,
      DriveQueue::Open(
          {.drive = drive,
           .depth = depth,
           .pending_max = options_.pending_fetches_max},
          open_device,
          [this](DriveQueue& q, std::span<DeviceResult> results) {
            OnDeviceResults(q, results);
          },
          *in_flight, *memory));
  queue->SetPatience([this] { return DevicePatience(); });
  MutexLock lock(&mutex_);
  // If another thread was faster, close this queue.
  if (drives_.Find(drive.name) == nullptr) {
    drives_.Add(std::move(queue));
  }
  return absl::OkStatus();
}

std::chrono::microseconds BlockStore::DevicePatience() const {
  const std::chrono::nanoseconds half = decode_pool_->Backlog() / 2;
  return half < kDevicePatienceMin
             ? std::chrono::microseconds(0)
             : std::chrono::duration_cast<std::chrono::microseconds>(
                   std::min<std::chrono::nanoseconds>(
                       half, decode_pool_->serves_several_clients()
                                 ? kDevicePatienceInTurnsMax
                                 : kDevicePatienceMax));
}

std::chrono::nanoseconds BlockStore::TimePerRead(
    const FilePlacement* placement) const {
  MutexLock lock(&mutex_);
  return drives_.QueueOf(placement).TimePerRead();
}

std::string BlockStore::engine_name() const {
  MutexLock lock(&mutex_);
  return drives_.queues().front()->engine_name();
}

std::vector<DriveDescription> BlockStore::Drives() const {
  MutexLock lock(&mutex_);
  std::vector<DriveDescription> descriptions;
  for (const std::unique_ptr<DriveQueue>& queue : drives_.queues()) {
    descriptions.push_back(queue->Describe());
  }
  return descriptions;
}

BlockStoreStats BlockStore::Stats() const {
  const BlockCache::Stats cache = cache_.GetStats();
  MutexLock lock(&mutex_);
  BlockStoreStats stats = stats_;
  stats.cache_hits = cache.hits;
  stats.cache_evictions = cache.evictions;
  stats.cache_size_bytes = cache.size_bytes;
  stats.cache_capacity_bytes = cache_.capacity_size_bytes();
  stats.cache_blocks = cache.blocks;
  const InFlightTable::Stats& in_flight = in_flight_.stats();
  stats.joined_fetches = in_flight.joined_fetches;
  stats.cancelled_fetches = in_flight.cancelled_fetches;
  stats.repeated_blocks = in_flight.repeated_blocks;
  stats.recovered_blocks = in_flight.recovered_blocks;
  stats.queued_fetches = in_flight.queued_fetches;
  for (const std::unique_ptr<DriveQueue>& queue : drives_.queues()) {
    const DriveStats& of_drive = stats.drives.emplace_back(queue->Stats());
    stats.device_reads += of_drive.reads;
    stats.device_read_bytes += of_drive.read_bytes;
    stats.device_errors += of_drive.errors;
    stats.device_reads_in_flight += of_drive.reads_in_flight;
  }
  stats.buffers_size_bytes = memory_.reserved_size_bytes();
  return stats;
}

}  // namespace quire
