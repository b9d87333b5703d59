// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/fetch/drive_queue.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"
#include "server/storage/scheduler/elevator_scheduler.h"

namespace quire {
namespace {

ElevatorScheduler::Options SchedulerOptions(const DriveQueue::Options& options,
                                            bool uses_priorities,
                                            const ReadMemory& memory) {
  ElevatorScheduler::Options scheduler;
  if (options.drive.kind == DriveKind::kSolidState) {
    scheduler = ElevatorScheduler::Options::SolidState();
  } else if (options.drive.kind == DriveKind::kObjectStore) {
    scheduler = ElevatorScheduler::Options::ObjectStore();
  } else if (uses_priorities) {
    scheduler = ElevatorScheduler::Options::WithPriorities();
  }
  scheduler.pending_requests_max = options.pending_max;
  scheduler.buffer_memory_size_bytes = memory.buffer_size();
  if (memory.direct_io()) {
    // Even widened, the largest reads have a size that the pool keeps.
    scheduler.read_size_bytes_max -= kDirectMarginBytes;
  }
  return scheduler;
}

}  // namespace

DriveQueue::DriveQueue(const Options& options, InFlightTable& in_flight,
                       ReadMemory& memory)
    : options_(options), in_flight_(in_flight), memory_(memory) {
  stats_.name = options.drive.name;
}

absl::StatusOr<std::unique_ptr<DriveQueue>> DriveQueue::Open(
    const Options& options, const DeviceFactory& open_device,
    OnResults on_results, InFlightTable& in_flight, ReadMemory& memory) {
  std::unique_ptr<DriveQueue> queue(new DriveQueue(options, in_flight, memory));
  QUIRE_ASSIGN_OR_RETURN(
      OpenedDevice opened,
      open_device(
          [q = queue.get(), on_results = std::move(on_results)](
              std::span<DeviceResult> results) { on_results(*q, results); }));
  queue->device_ = std::move(opened.device);
  queue->note_ = std::move(opened.note);
  if (options.drive.has_priorities &&
      options.drive.kind == DriveKind::kRotational) {
    queue->uses_priorities_ = queue->device_->takes_priorities();
    if (!queue->uses_priorities_) {
      absl::StrAppend(&queue->note_, queue->note_.empty() ? "" : "; ",
                      "the drive's priorities need io_uring and CAP_SYS_NICE");
    }
  }
  queue->scheduler_ = std::make_unique<ElevatorScheduler>(
      SchedulerOptions(options, queue->uses_priorities_, memory));
  return queue;
}

void DriveQueue::SetPatience(Device::Patience patience) {
  device_->SetPatience(std::move(patience));
}

void DriveQueue::Submit(std::span<const DeviceRead> operations) {
  device_->Submit(operations);
}

void DriveQueue::Invalidate(const BlockFetch& fetch) {
  device_->Invalidate(fetch.extent.fd, fetch.extent.offset,
                      fetch.extent.size_bytes);
}

void DriveQueue::CloseDevice() {
  device_.reset();
}

void DriveQueue::Enqueue(SchedulerTime now, BlockRun& run) {
  if (run.empty()) {
    return;
  }
  ScheduledRequest request = RequestFor(run, options_.drive.name);
  request.id = next_request_id_++;
  // There are at most as many runs as fetches, which are limited to the
  // scheduler's capacity.
  const absl::Status status = scheduler_->Push(now, request);
  QUIRE_CHECK(
      status.ok(), "the queue of drive \"", options_.drive.name,
      "\" refused a run within its bound: ", std::string(status.message()));
  for (InFlightBlock* block : run) {
    block->queue = this;
    block->request_id = request.id;
  }
  runs_.emplace(request.id, std::move(run));
  run.clear();  // NOLINT(bugprone-use-after-move): clear() makes it empty.
}

void DriveQueue::Dequeue(SchedulerTime now, InFlightBlock& block) {
  scheduler_->Cancel(block.request_id);
  const auto it = runs_.find(block.request_id);
  const BlockRun run = std::move(it->second);
  runs_.erase(it);
  const auto at = std::find(run.begin(), run.end(), &block);
  BlockRun before(run.begin(), at);
  Enqueue(now, before);
  BlockRun behind(at + 1, run.end());
  Enqueue(now, behind);
}

void DriveQueue::Promote(SchedulerTime now, InFlightBlock& block,
                         FetchClass fetch_class) {
  if (runs_.find(block.request_id)->second.size() == 1) {
    block.fetch.fetch_class = fetch_class;
    scheduler_->Promote(block.request_id, fetch_class);
    return;
  }
  Dequeue(now, block);
  block.fetch.fetch_class = fetch_class;
  BlockRun run = {&block};
  Enqueue(now, run);
}

void DriveQueue::DequeueAll() {
  for (const auto& [request_id, run] : runs_) {
    scheduler_->Cancel(request_id);
  }
  runs_.clear();
}

bool DriveQueue::Plan(SchedulerTime now, size_t reads_max, DriveReads& reads) {
  const size_t in_flight = scheduler_->reads_in_flight();
  if (!has_pending() || in_flight >= options_.depth) {
    return true;
  }
  const DispatchLimits limits{
      .reads_max = static_cast<uint32_t>(
          std::min(reads_max, options_.depth - in_flight)),
      .memory_size_bytes_max = memory_.free_size_bytes(),
      .at_least_one = memory_.reserved_size_bytes() == 0};
  for (const ScheduledRead& read : scheduler_->Dispatch(now, limits)) {
    reads.push_back(Dispatch(now, read));
  }
  return !scheduler_->lacks_memory();
}

DriveReadPtr DriveQueue::Dispatch(SchedulerTime now,
                                  const ScheduledRead& read) {
  std::vector<InFlightBlock*> blocks;
  for (const uint64_t request_id : read.request_ids) {
    const auto it = runs_.find(request_id);
    blocks.insert(blocks.end(), it->second.begin(), it->second.end());
    runs_.erase(it);
  }
  for (InFlightBlock* block : blocks) {
    in_flight_.MarkAtDevice(*block);
    block->dispatched = now;
  }
  // Runs overlap if two sources have the same bytes.
  std::sort(blocks.begin(), blocks.end(),
            [](const InFlightBlock* a, const InFlightBlock* b) {
              return a->fetch.extent.offset < b->fetch.extent.offset;
            });
  memory_.Reserve(read.memory_size_bytes);
  stats_.queue_waits.Add(read.waited /
                         static_cast<int64_t>(read.request_ids.size()));
  auto dispatched =
      std::make_shared<DriveRead>(*this, read, std::move(blocks), memory_);
  reads_.emplace(read.id, ReadAtDevice{dispatched, now});
  return dispatched;
}

DriveQueue::Ended DriveQueue::TakeResult(SchedulerTime now,
                                         const DeviceResult& result,
                                         std::vector<DeviceRead>& repeats) {
  const auto it = reads_.find(result.id);
  Ended ended{.read = it->second.read, .blocks = {}};
  ++stats_.reads;
  stats_.read_durations.Add(now - it->second.started);
  time_per_read_.Add(now - std::max(last_result_, it->second.started));
  last_result_ = now;
  stats_.read_bytes += result.size_bytes;
  // The last page of a direct read may lie across the end of the file. A
  // truncated file is damaged, not its drive.
  stats_.errors += result.status.ok() || absl::IsDataLoss(result.status) ||
                           result.size_bytes >= ended.read->NeededSizeBytes()
                       ? 0
                       : 1;
  if (ended.read->TakeResult(result, in_flight_, ended.blocks)) {
    scheduler_->Complete(now, result.id);
    reads_.erase(it);
  } else {
    repeats.push_back(ended.read->NextOperation());
    it->second.started = now;
  }
  return ended;
}

DriveDescription DriveQueue::Describe() const {
  return {.drive = options_.drive,
          .engine = device_->name(),
          .uses_priorities = uses_priorities_,
          .note = note_};
}

DriveStats DriveQueue::Stats() const {
  DriveStats stats = stats_;
  stats.queued_requests = scheduler_->pending_requests();
  stats.reads_in_flight = scheduler_->reads_in_flight();
  return stats;
}

void StartReads(const DriveReads& reads, BufferPool& buffers) {
  absl::InlinedVector<DeviceRead, 1> operations;
  for (size_t i = 0; i < reads.size(); ++i) {
    reads[i]->AllocateBuffer(buffers);
    operations.push_back(reads[i]->FirstOperation());
    DriveQueue& queue = reads[i]->queue();
    if (i + 1 == reads.size() || &reads[i + 1]->queue() != &queue) {
      queue.Submit({operations.data(), operations.size()});
      operations.clear();
    }
  }
}

}  // namespace quire
