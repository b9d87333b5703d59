// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/scheduler/elevator_scheduler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace quire {
namespace {

uint64_t EndOf(DeviceAddress address, uint32_t size_bytes) {
  return address.offset.value + size_bytes;
}

}  // namespace

absl::Status ElevatorScheduler::Push(SchedulerTime now,
                                     const ScheduledRequest& request) {
  if (pending_.size() >= options_.pending_requests_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the device's queue is full: ", pending_.size(),
                     " reads wait; try again later"));
  }
  const auto [it, added] =
      pending_.emplace(request.id, Pending{.request = request, .entry = {}});
  if (!added) {
    return absl::InternalError(
        absl::StrCat("request ", request.id, " waits already"));
  }
  it->second.pushed_at = now;
  Enqueue(now, it->second);
  return absl::OkStatus();
}

bool ElevatorScheduler::Cancel(uint64_t request_id) {
  const auto it = pending_.find(request_id);
  if (it == pending_.end()) {
    return false;
  }
  const Pending& pending = it->second;
  queues_[IndexOf(pending.request.fetch_class)].Erase(pending.entry);
  pending_.erase(it);
  return true;
}

void ElevatorScheduler::Promote(uint64_t request_id, FetchClass fetch_class) {
  const auto it = pending_.find(request_id);
  if (it == pending_.end() || it->second.request.fetch_class <= fetch_class) {
    return;
  }
  Pending& pending = it->second;
  queues_[IndexOf(pending.request.fetch_class)].Erase(pending.entry);
  pending.request.fetch_class = fetch_class;
  // Use the latest known time, that of Push().
  Enqueue(pending.pushed_at, pending);
}

void ElevatorScheduler::Enqueue(SchedulerTime now, Pending& pending) {
  const ScheduledRequest& request = pending.request;
  const size_t class_index = IndexOf(request.fetch_class);
  if (class_index == kInteractive) {
    interactive_at_ = std::max(now, interactive_at_.value_or(now));
  }
  if (class_index == kScan && queues_[kScan].empty()) {
    scan_passed_over_ = 0;
  }
  if (class_index == kScrub && queues_[kScrub].empty()) {
    scrub_passed_over_ = 0;
  }
  pending.entry = {.id = request.id,
                   .address = request.address,
                   .client_id = request.client_id};
  queues_[class_index].Push(pending.entry);
}

std::vector<ScheduledRead> ElevatorScheduler::Dispatch(
    SchedulerTime now, const DispatchLimits& limits) {
  std::vector<ScheduledRead> reads;
  uint64_t memory_left = limits.memory_size_bytes_max;
  lacks_memory_ = false;
  while (reads.size() < limits.reads_max) {
    const std::optional<size_t> class_index = ChooseClass(now);
    if (!class_index.has_value()) {
      break;
    }
    // The next read waits for memory, so that small reads do not starve a large
    // one.
    std::optional<ScheduledRead> read =
        MakeRead(now, *class_index, memory_left,
                 /*at_any_cost=*/limits.at_least_one && reads.empty());
    if (!read.has_value()) {
      lacks_memory_ = true;
      break;
    }
    memory_left -= std::min(memory_left, read->memory_size_bytes);
    reads.push_back(*std::move(read));
  }
  return reads;
}

void ElevatorScheduler::Complete(SchedulerTime /*now*/, uint64_t read_id) {
  const auto it = in_flight_.find(read_id);
  if (it == in_flight_.end()) {
    return;
  }
  if (it->second == kInteractive) {
    --interactive_in_flight_;
    if (interactive_in_flight_ == 0) {
      EndVisit();
    }
  } else if (it->second != kScrub) {
    others_owed_ -= std::min(others_owed_, 1U);
  }
  in_flight_.erase(it);
}

void ElevatorScheduler::EndVisit() {
  if (visit_reads_ > 0) {
    visit_reads_ = 0;
    others_owed_ = options_.others_turn;
  }
}

std::optional<size_t> ElevatorScheduler::ChooseClass(SchedulerTime now) const {
  const bool interactive = !queues_[kInteractive].empty();
  const bool others = OthersWait();
  const bool between = options_.hold && interactive_in_flight_ == 0;
  const bool others_turn = others_left_ > 0 && (others_due_ || between);
  std::optional<size_t> chosen;
  if (IsScrubsTurn()) {
    chosen = kScrub;
  } else if (interactive && FewAreInteractive()) {
    chosen = ChooseNextToUrgent();
  } else if (interactive && !(others && others_turn)) {
    chosen = kInteractive;
  } else if (others && (others_turn || !options_.hold || between)) {
    chosen = ChooseOther();
  }
  if (chosen.has_value() && in_flight_.size() >= DepthFor(*chosen, now)) {
    return std::nullopt;
  }
  return chosen;
}

bool ElevatorScheduler::IsScrubsTurn() const {
  const bool is_idle =
      queues_[kInteractive].empty() && !OthersWait() && in_flight_.empty();
  return !queues_[kScrub].empty() &&
         (is_idle || scrub_passed_over_ >= kScrubPassedOverMax);
}

bool ElevatorScheduler::FewAreInteractive() const {
  return queues_[kInteractive].size() + interactive_in_flight_ <=
         options_.urgent_max;
}

std::optional<size_t> ElevatorScheduler::ChooseNextToUrgent() const {
  const bool others_are_there =
      OthersWait() || in_flight_.size() > interactive_in_flight_;
  if (others_owed_ == 0 || !others_are_there) {
    return kInteractive;
  }
  return OthersWait() ? std::optional(ChooseOther()) : std::nullopt;
}

bool ElevatorScheduler::OthersWait() const {
  return !queues_[kBatch].empty() || !queues_[kScan].empty();
}

size_t ElevatorScheduler::ChooseOther() const {
  const bool scans_turn =
      queues_[kBatch].empty() || scan_passed_over_ >= kScanPassedOverMax;
  return scans_turn && !queues_[kScan].empty() ? kScan : kBatch;
}

uint32_t ElevatorScheduler::DepthFor(size_t class_index,
                                     SchedulerTime now) const {
  const std::optional<uint64_t> gap = queues_[class_index].MeanGapAhead();
  if (gap.has_value() && *gap < options_.dense_gap_size_bytes) {
    return options_.dense_depth;
  }
  const bool shared = class_index != kInteractive && !others_due_ &&
                      interactive_at_.has_value() &&
                      now - *interactive_at_ < options_.shared_window;
  return shared ? options_.shared_depth : options_.depth;
}

std::optional<ScheduledRead> ElevatorScheduler::MakeRead(
    SchedulerTime now, size_t class_index, uint64_t memory_size_bytes_max,
    bool at_any_cost) {
  const SweepQueue::Choice choice = queues_[class_index].Next();
  const ScheduledRequest& first = pending_.find(choice.id)->second.request;
  const bool urgent = class_index == kInteractive && FewAreInteractive();
  ScheduledRead read;
  read.id = next_read_id_;
  read.address = first.address;
  read.size_bytes = first.size_bytes;
  read.memory_size_bytes = options_.buffer_memory_size_bytes(read.size_bytes) +
                           first.memory_size_bytes;
  read.fetch_class = first.fetch_class;
  read.overdue = choice.overdue;
  if (read.memory_size_bytes > memory_size_bytes_max && !at_any_cost) {
    return std::nullopt;
  }
  const FileOffset contiguous_end = first.contiguous_end;
  SweepQueue::Place last{first.address, first.id};
  Take(now, choice.id, read);
  for (const Pending* next = NextAfter(last);
       next != nullptr &&
       Grow(read, *next, contiguous_end, memory_size_bytes_max);
       next = NextAfter(last)) {
    last = {next->request.address, next->request.id};
    Take(now, next->request.id, read);
  }
  ++next_read_id_;
  queues_[class_index].CountRead(last.address, read.overdue);
  read.urgent = urgent;
  in_flight_.emplace(read.id, class_index);
  interactive_in_flight_ += class_index == kInteractive ? 1 : 0;
  CountTurn(class_index);
  if (urgent && ++visit_reads_ >= options_.interactive_turn_max) {
    EndVisit();
  }
  return read;
}

void ElevatorScheduler::CountTurn(size_t class_index) {
  if (class_index == kScrub) {
    scrub_passed_over_ = 0;
    return;
  }
  scrub_passed_over_ = queues_[kScrub].empty() ? 0 : scrub_passed_over_ + 1;
  if (class_index == kInteractive) {
    interactive_run_ = OthersWait() ? interactive_run_ + 1 : 0;
    others_due_ =
        others_due_ || interactive_run_ >= options_.interactive_turn_max;
    others_left_ = options_.others_turn;
    return;
  }
  interactive_run_ = 0;
  others_left_ -= std::min(others_left_, 1U);
  others_due_ = others_due_ && others_left_ > 0;
  scan_passed_over_ = class_index == kScan || queues_[kScan].empty()
                          ? 0
                          : scan_passed_over_ + 1;
}

const ElevatorScheduler::Pending* ElevatorScheduler::NextAfter(
    const SweepQueue::Place& place) const {
  const SweepQueue::Place* nearest = nullptr;
  for (const SweepQueue& queue : queues_) {
    const SweepQueue::Place* next = queue.After(place);
    if (next != nullptr && (nearest == nullptr || *next < *nearest)) {
      nearest = next;
    }
  }
  return nearest == nullptr ? nullptr : &pending_.find(nearest->id)->second;
}

// Widens the read to include the next request. If a limit forbids that, returns
// false and leaves the read unchanged.
bool ElevatorScheduler::Grow(ScheduledRead& read, const Pending& next,
                             FileOffset contiguous_end,
                             uint64_t memory_size_bytes_max) const {
  const ScheduledRequest& request = next.request;
  const uint64_t end = EndOf(read.address, read.size_bytes);
  // Extents of a file may share a position: what follows on the device may
  // precede in the file.
  if (request.address.fd != read.address.fd ||
      request.address.offset < read.address.offset ||
      EndOf(request.address, request.size_bytes) > contiguous_end.value ||
      (request.address.offset.value > end &&
       request.address.offset.value - end > options_.gap_size_bytes_max)) {
    return false;
  }
  const uint64_t size_bytes =
      std::max(end, EndOf(request.address, request.size_bytes)) -
      read.address.offset.value;
  if (size_bytes > options_.read_size_bytes_max) {
    return false;
  }
  const uint64_t memory_size_bytes =
      read.memory_size_bytes -
      options_.buffer_memory_size_bytes(read.size_bytes) +
      options_.buffer_memory_size_bytes(size_bytes) + request.memory_size_bytes;
  if (memory_size_bytes > memory_size_bytes_max) {
    return false;
  }
  read.size_bytes = static_cast<uint32_t>(size_bytes);
  read.memory_size_bytes = memory_size_bytes;
  return true;
}

void ElevatorScheduler::Take(SchedulerTime now, uint64_t request_id,
                             ScheduledRead& read) {
  const auto it = pending_.find(request_id);
  const Pending& pending = it->second;
  read.waited += now - pending.pushed_at;
  read.request_ids.push_back(request_id);
  queues_[IndexOf(pending.request.fetch_class)].Erase(pending.entry);
  pending_.erase(it);
}

}  // namespace quire
