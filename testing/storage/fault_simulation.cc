// SPDX-License-Identifier: GPL-3.0-or-later
#include "testing/storage/fault_simulation.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <queue>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "server/storage/scheduler/elevator_scheduler.h"
#include "server/storage/scheduler/sweep_queue.h"
#include "testing/storage/fault_plan.h"

namespace quire {
namespace {

using std::chrono::microseconds;

constexpr SchedulerTime kStall = std::chrono::seconds(30);

// Parameters of a fault simulation that a seed decides in advance: the file,
// the device's depth and memory, and the arrivals. `sparse`: requests are too
// far apart to be joined, and neither memory nor the queue's bound matters.
struct FaultShape {
  FaultShape(std::mt19937_64& random, bool sparse)
      : blocks(sparse ? 20'000 : 50 + random() % 1000),
        block_size_bytes(static_cast<uint32_t>(512 + random() % 60'000)),
        stride_bytes(
            block_size_bytes +
            (sparse ? 1 << 20 : (random() % 3) * (random() % 100'000))),
        depth(static_cast<uint32_t>(1 + random() % 32)),
        memory_size_bytes_max(uint64_t{32 << 10} << random() % 10),
        arrival_gap_us(random() % 4'000) {
    scheduler = random() % 2 == 0 ? ElevatorScheduler::Options()
                                  : ElevatorScheduler::Options::SolidState();
    scheduler.pending_requests_max =
        sparse ? 1 << 16 : static_cast<uint32_t>(10 + random() % 300);
    if (sparse) {
      depth = 8;
      memory_size_bytes_max = uint64_t{64} << 20;
    }
  }

  uint64_t blocks;
  uint32_t block_size_bytes;
  // Distance between the starts of two blocks.
  uint64_t stride_bytes;
  // Reads in flight at the device, and the memory of their buffers.
  uint32_t depth;
  uint64_t memory_size_bytes_max;
  // Times between requests are drawn from 0 to twice this.
  uint64_t arrival_gap_us;
  ElevatorScheduler::Options scheduler;
};

// Upper bound on reads of any class begun while a request waits, if at most
// `waiting_max` requests waited meanwhile: the bound of SweepQueue for the
// class, times the turns of others between two of its reads.
uint64_t WaitBound(FetchClass fetch_class, uint64_t waiting_max) {
  // Turns: others per interactive read; interactive reads per other; batch
  // reads per scan read.
  constexpr uint64_t kOthersTurn = 8;
  constexpr uint64_t kInteractiveTurn = 24 + 1;
  constexpr uint64_t kBatchTurn = 8 + 1;
  const uint64_t own = SweepQueue::ReadsUntilServedMax(waiting_max) + 1;
  switch (fetch_class) {
    case FetchClass::kInteractive:
      return own * (1 + kOthersTurn);
    case FetchClass::kBatch:
      return own * 2 * (1 + kInteractiveTurn);
    case FetchClass::kScan:
    case FetchClass::kScrub:
      return own * kBatchTurn * (1 + kInteractiveTurn);
  }
  return 0;
}

class Simulation {
 public:
  Simulation(const SchedulerFactory& make_scheduler,
             const FaultSimulationOptions& options)
      : options_(options),
        random_(options.seed),
        shape_(random_, options.closed_loop > 0),
        plan_(options.seed, shape_.blocks, shape_.block_size_bytes,
              shape_.stride_bytes),
        scheduler_(make_scheduler(shape_.scheduler)) {}

  FaultSimulationResult Run() {
    PlanArrivals();
    while (!events_.empty() && result_.violation.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      event.action();
      Dispatch();
      CheckCounts();
    }
    Require(ended_ids_.size() == result_.fetches && in_flight_.empty() &&
                readings_.empty() && reserved_size_bytes_ == 0,
            "something is left at the end");
    return std::move(result_);
  }

 private:
  struct Event {
    SchedulerTime at{0};
    // Ties go to the first planned.
    uint64_t order = 0;
    std::function<void()> action;

    bool operator>(const Event& other) const {
      return std::pair(at, order) > std::pair(other.at, other.order);
    }
  };

  struct InFlightBlock {
    uint64_t request_id = 0;
    FetchClass fetch_class = FetchClass::kInteractive;
    bool reading = false;
    // Number of reads at the start of its wait, and the most that waited at
    // once since.
    uint64_t reads_before = 0;
    uint64_t waiting_max = 0;
    // Fetches.
    std::vector<uint64_t> waiters;
  };

  struct Reading {
    ScheduledRead read;
    std::vector<uint64_t> blocks;
    // Blocks [done_count, operation_end) are being read.
    size_t done_count = 0;
    size_t operation_end = 0;
    size_t decodings_left = 0;
    bool at_device = true;
  };

  void Require(bool condition, const std::string& what) {
    if (!condition && result_.violation.empty()) {
      result_.violation = absl::StrCat(what, ", after ", now_.count(),
                                       " ns and ", result_.reads, " reads");
    }
  }

  SchedulerTime DrawUs(uint64_t least, uint64_t most) {
    return microseconds(least + random_() % (most - least + 1));
  }

  void At(SchedulerTime at, std::function<void()> action) {
    events_.push({at, next_order_++, std::move(action)});
  }

  void PlanArrivals() {
    SchedulerTime at{0};
    arrivals_left_ = options_.fetches;
    const uint64_t planned =
        options_.closed_loop > 0 ? options_.closed_loop : options_.fetches;
    for (uint64_t i = 0; i < planned; ++i) {
      // Some arrive together.
      if (options_.closed_loop == 0 && random_() % 8 == 0) {
        at += 8 * DrawUs(0, 2 * shape_.arrival_gap_us);
      }
      At(at, [this] { Arrive(); });
    }
  }

  void Arrive() {
    if (arrivals_left_ == 0) {
      return;
    }
    --arrivals_left_;
    const uint64_t fetch_id = ++result_.fetches;
    const bool closed = options_.closed_loop > 0;
    const uint64_t block =
        random_() % (closed ? shape_.blocks : 1 + random_() % shape_.blocks);
    const auto fetch_class = closed ? FetchClass::kInteractive
                                    : static_cast<FetchClass>(random_() % 3);
    const auto it = in_flight_.find(block);
    if (it != in_flight_.end()) {
      ++result_.joined;
      it->second.waiters.push_back(fetch_id);
      Promote(it->second, fetch_class);
    } else if (!Begin(block, fetch_class, fetch_id)) {
      End(fetch_id, block, absl::StatusCode::kResourceExhausted);
      return;
    }
    if (!closed && random_() % 8 == 0) {
      At(now_ + DrawUs(0, 50'000),
         [this, fetch_id, block] { Cancel(fetch_id, block); });
    }
  }

  void Promote(InFlightBlock& in_flight, FetchClass fetch_class) {
    if (in_flight.reading || fetch_class >= in_flight.fetch_class) {
      return;
    }
    scheduler_->Promote(in_flight.request_id, fetch_class);
    in_flight.fetch_class = fetch_class;
    in_flight.reads_before = result_.reads;
  }

  bool Begin(uint64_t block, FetchClass fetch_class, uint64_t fetch_id) {
    const bool full = queued_.size() >= shape_.scheduler.pending_requests_max;
    const absl::Status status = scheduler_->Push(
        now_,
        {.id = fetch_id,
         .address = {.fd = 3, .offset = FileOffset{plan_.OffsetOf(block)}},
         .size_bytes = shape_.block_size_bytes,
         .memory_size_bytes = 2 * uint64_t{shape_.block_size_bytes},
         .fetch_class = fetch_class,
         .client_id = random_() % 4 * (random_() % 4)});
    Require(absl::IsResourceExhausted(status) == full && status.ok() == !full,
            "a request was taken or refused against the queue's bound");
    if (!status.ok()) {
      return false;
    }
    InFlightBlock& in_flight = in_flight_[block];
    in_flight.request_id = fetch_id;
    in_flight.fetch_class = fetch_class;
    in_flight.reads_before = result_.reads;
    in_flight.waiters.push_back(fetch_id);
    queued_.emplace(fetch_id, block);
    for (const auto& [request_id, queued_block] : queued_) {
      InFlightBlock& other = in_flight_[queued_block];
      other.waiting_max = std::max<uint64_t>(other.waiting_max, queued_.size());
    }
    result_.pending_max =
        std::max<uint64_t>(result_.pending_max, queued_.size());
    return true;
  }

  void Cancel(uint64_t fetch_id, uint64_t block) {
    const auto it = in_flight_.find(block);
    if (it == in_flight_.end() || it->second.reading) {
      return;
    }
    InFlightBlock& in_flight = it->second;
    const size_t erased = std::erase(in_flight.waiters, fetch_id);
    if (erased == 0) {
      return;
    }
    if (in_flight.waiters.empty()) {
      Require(scheduler_->Cancel(in_flight.request_id),
              "a request that waits could not be cancelled");
      queued_.erase(in_flight.request_id);
      in_flight_.erase(it);
    }
    End(fetch_id, block, absl::StatusCode::kCancelled);
  }

  void Dispatch() {
    const size_t in_flight = scheduler_->reads_in_flight();
    const uint64_t memory_left =
        shape_.memory_size_bytes_max -
        std::min(shape_.memory_size_bytes_max, reserved_size_bytes_);
    const bool at_least_one = reserved_size_bytes_ == 0;
    const uint64_t space =
        shape_.depth - std::min<uint64_t>(shape_.depth, in_flight);
    const std::vector<ScheduledRead> reads =
        scheduler_->Dispatch(now_, {.reads_max = static_cast<uint32_t>(space),
                                    .memory_size_bytes_max = memory_left,
                                    .at_least_one = at_least_one});
    Require(reads.size() <= space, "the device got more than its depth");
    uint64_t memory_size_bytes = 0;
    for (const ScheduledRead& read : reads) {
      memory_size_bytes += read.memory_size_bytes;
      Take(read);
    }
    const bool lone =
        at_least_one && reads.size() == 1 && reads[0].request_ids.size() == 1;
    Require(lone || memory_size_bytes <= memory_left,
            "reads take more memory than there is");
    Require(!queued_.empty() || scheduler_->pending_requests() == 0,
            "requests wait that no caller made");
    Require(queued_.empty() || scheduler_->reads_in_flight() > 0 ||
                reserved_size_bytes_ > 0,
            "the device idles while requests wait");
  }

  void Take(const ScheduledRead& read) {
    Require(read.id != 0 && !readings_.contains(read.id) &&
                !read.request_ids.empty(),
            "a read without a name or a purpose");
    Require(read.size_bytes <= shape_.scheduler.read_size_bytes_max ||
                read.request_ids.size() == 1,
            "a joint read is too large");
    Reading& reading = readings_[read.id];
    reading.read = read;
    ++result_.reads;
    for (const uint64_t request_id : read.request_ids) {
      const auto it = queued_.find(request_id);
      if (it == queued_.end()) {
        Require(false, "a request was dispatched that does not wait");
        return;
      }
      const uint64_t offset = plan_.OffsetOf(it->second);
      Require(offset >= read.address.offset.value &&
                  offset + shape_.block_size_bytes <=
                      read.address.offset.value + read.size_bytes,
              "a request lies outside of its read");
      InFlightBlock& in_flight = in_flight_[it->second];
      in_flight.reading = true;
      const uint64_t waited_reads = result_.reads - in_flight.reads_before;
      result_.longest_wait_reads =
          std::max(result_.longest_wait_reads, waited_reads);
      Require(waited_reads <=
                  WaitBound(in_flight.fetch_class, in_flight.waiting_max),
              "a request waited beyond its bound");
      reading.blocks.push_back(it->second);
      queued_.erase(it);
    }
    reserved_size_bytes_ += read.memory_size_bytes;
    reading.operation_end = reading.decodings_left = reading.blocks.size();
    StartOperation(read.id, reading);
  }

  void StartOperation(uint64_t read_id, const Reading& reading) {
    const bool whole = reading.done_count == 0 &&
                       reading.operation_end == reading.blocks.size();
    const uint64_t offset =
        whole ? reading.read.address.offset.value
              : plan_.OffsetOf(reading.blocks[reading.done_count]);
    const uint64_t size_bytes =
        whole ? reading.read.size_bytes : shape_.block_size_bytes;
    SchedulerTime latency = DrawUs(100, 10'000);
    if (random_() % 500 == 0) {
      latency += kStall;
      ++result_.stalls;
    }
    At(now_ + latency, [this, read_id, offset,
                        outcome = plan_.Read(offset, size_bytes, random_())] {
      OnRead(read_id, offset, outcome);
    });
  }

  void OnRead(uint64_t read_id, uint64_t offset, const DeviceResult& outcome) {
    Reading& reading = readings_[read_id];
    const bool alone = reading.operation_end - reading.done_count == 1;
    for (size_t& i = reading.done_count; i < reading.operation_end; ++i) {
      const uint64_t block = reading.blocks[i];
      absl::StatusCode code = absl::StatusCode::kOk;
      if (plan_.OffsetOf(block) - offset + shape_.block_size_bytes >
          outcome.size_bytes) {
        code = outcome.status.code();
        if (!alone && code == absl::StatusCode::kUnavailable) {
          break;
        }
      }
      At(now_ + DrawUs(10, 500),
         [this, read_id, block, code] { Decode(read_id, block, code); });
    }
    if (reading.done_count < reading.blocks.size()) {
      reading.operation_end = reading.done_count + 1;
      ++result_.repeated_reads;
      StartOperation(read_id, reading);
      return;
    }
    reading.at_device = false;
    scheduler_->Complete(now_, read_id);
  }

  void Decode(uint64_t read_id, uint64_t block, absl::StatusCode code) {
    if (code == absl::StatusCode::kOk &&
        plan_.FaultOf(block) == BlockFault::kFlipped) {
      code = absl::StatusCode::kDataLoss;
    }
    Reading& reading = readings_[read_id];
    uint64_t freed_size_bytes = 2 * uint64_t{shape_.block_size_bytes};
    if (--reading.decodings_left == 0) {
      freed_size_bytes += reading.read.size_bytes;
      readings_.erase(read_id);
    }
    Require(freed_size_bytes <= reserved_size_bytes_,
            "a read's memory was not what its requests need");
    reserved_size_bytes_ -= std::min(freed_size_bytes, reserved_size_bytes_);
    const InFlightBlock in_flight = std::move(in_flight_[block]);
    in_flight_.erase(block);
    for (const uint64_t fetch_id : in_flight.waiters) {
      End(fetch_id, block, code);
    }
  }

  void End(uint64_t fetch_id, uint64_t block, absl::StatusCode code) {
    Require(ended_ids_.insert(fetch_id).second, "a fetch ended twice");
    switch (code) {
      case absl::StatusCode::kCancelled:
        ++result_.cancelled;
        break;
      case absl::StatusCode::kResourceExhausted:
        ++result_.refused;
        break;
      default:
        result_.good += code == absl::StatusCode::kOk ? 1 : 0;
        result_.unavailable += code == absl::StatusCode::kUnavailable ? 1 : 0;
        result_.data_loss += code == absl::StatusCode::kDataLoss ? 1 : 0;
        Require(plan_.Allows(block, code), "a fetch got another block's error");
    }
    result_.fingerprint =
        (result_.fingerprint ^ fetch_id ^ static_cast<uint64_t>(code) << 56 ^
         static_cast<uint64_t>(now_.count()) << 20) *
        0x9E3779B97F4A7C15;
    if (options_.closed_loop > 0) {
      At(now_, [this] { Arrive(); });
    }
  }

  void CheckCounts() {
    const auto at_device =
        std::count_if(readings_.begin(), readings_.end(),
                      [](const auto& entry) { return entry.second.at_device; });
    Require(scheduler_->pending_requests() == queued_.size(),
            "the count of requests that wait is wrong");
    Require(scheduler_->reads_in_flight() == static_cast<size_t>(at_device),
            "the count of reads in flight is wrong");
  }

  const FaultSimulationOptions options_;
  std::mt19937_64 random_;
  const FaultShape shape_;
  const FaultPlan plan_;
  const std::unique_ptr<Scheduler> scheduler_;
  SchedulerTime now_{0};
  uint64_t next_order_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t arrivals_left_ = 0;
  std::set<uint64_t> ended_ids_;
  // By block; waiting blocks by request.
  std::map<uint64_t, InFlightBlock> in_flight_;
  std::map<uint64_t, uint64_t> queued_;
  std::map<uint64_t, Reading> readings_;
  uint64_t reserved_size_bytes_ = 0;
  FaultSimulationResult result_;
};

}  // namespace

FaultSimulationResult SimulateFaults(const SchedulerFactory& make_scheduler,
                                     const FaultSimulationOptions& options) {
  return Simulation(make_scheduler, options).Run();
}

}  // namespace quire
