// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/elevator_scheduler.h"

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
      pending_.emplace(request.id, Pending{.request = request});
  if (!added) {
    return absl::InternalError(
        absl::StrCat("request ", request.id, " waits already"));
  }
  it->second.pushed_at = now;
  Enqueue(it->second);
  return absl::OkStatus();
}

bool ElevatorScheduler::Cancel(uint64_t request_id) {
  const auto it = pending_.find(request_id);
  if (it == pending_.end()) {
    return false;
  }
  Dequeue(it->second);
  pending_.erase(it);
  return true;
}

void ElevatorScheduler::Promote(uint64_t request_id, FetchClass fetch_class) {
  const auto it = pending_.find(request_id);
  if (it == pending_.end() || it->second.request.fetch_class <= fetch_class) {
    return;
  }
  Dequeue(it->second);
  it->second.request.fetch_class = fetch_class;
  Enqueue(it->second);
}

void ElevatorScheduler::Enqueue(Pending& pending) {
  ClassQueue& queue = queues_[IndexOf(pending.request.fetch_class)];
  if (queue.by_address.empty()) {
    queue.passed_over = 0;
  }
  pending.deadline =
      queue.reads + kOverdueFactor * queue.by_address.size() + kOverdueBase;
  queue.by_address.insert({pending.request.address, pending.request.id});
  queue.by_deadline.insert({pending.deadline, pending.request.id});
}

void ElevatorScheduler::Dequeue(const Pending& pending) {
  ClassQueue& queue = queues_[IndexOf(pending.request.fetch_class)];
  queue.by_address.erase({pending.request.address, pending.request.id});
  queue.by_deadline.erase({pending.deadline, pending.request.id});
}

std::vector<ScheduledRead> ElevatorScheduler::Dispatch(
    SchedulerTime now, const DispatchLimits& limits) {
  std::vector<ScheduledRead> reads;
  uint64_t memory_left = limits.memory_size_bytes_max;
  while (reads.size() < limits.reads_max && !pending_.empty()) {
    const size_t class_index = ChooseClass();
    const Choice choice = ChooseRequest(queues_[class_index]);
    const Pending& first = pending_.find(choice.request_id)->second;
    ScheduledRead read;
    read.id = next_read_id_;
    read.address = first.request.address;
    read.size_bytes = first.request.size_bytes;
    read.memory_size_bytes =
        options_.buffer_memory_size_bytes(read.size_bytes) +
        first.request.memory_size_bytes;
    read.fetch_class = first.request.fetch_class;
    read.overdue = choice.overdue;
    // Whatever is next waits for memory, so that small reads do not keep a
    // large one waiting for ever.
    if (read.memory_size_bytes > memory_left &&
        !(limits.at_least_one && reads.empty())) {
      break;
    }
    Place last{first.request.address, first.request.id};
    Take(now, choice.request_id, read);
    for (const Pending* next = NextAfter(last);
         next != nullptr && Grow(read, *next, memory_left);
         next = NextAfter(last)) {
      last = {next->request.address, next->request.id};
      Take(now, next->request.id, read);
    }
    AccountFor(read, last.address);
    memory_left -= std::min(memory_left, read.memory_size_bytes);
    ++next_read_id_;
    reads.push_back(std::move(read));
  }
  return reads;
}

void ElevatorScheduler::Complete(SchedulerTime /*now*/, uint64_t read_id) {
  in_flight_.erase(read_id);
}

size_t ElevatorScheduler::ChooseClass() const {
  // The class that is served least looks first, or those above would take its
  // turn as well.
  for (size_t i = kClassCount; i-- > 0;) {
    if (!queues_[i].by_address.empty() &&
        queues_[i].passed_over >= kPassedOverMax[i]) {
      return i;
    }
  }
  size_t chosen = 0;
  while (queues_[chosen].by_address.empty()) {
    ++chosen;
  }
  return chosen;
}

ElevatorScheduler::Choice ElevatorScheduler::ChooseRequest(
    const ClassQueue& queue) {
  const auto [deadline, oldest_id] = *queue.by_deadline.begin();
  if (deadline <= queue.reads &&
      queue.reads_since_overdue + 1 >= kOverdueInterval) {
    return {oldest_id, true};
  }
  auto next = queue.by_address.lower_bound({queue.head, 0});
  if (next == queue.by_address.end()) {
    next = queue.by_address.begin();
  }
  return {next->id, false};
}

const ElevatorScheduler::Pending* ElevatorScheduler::NextAfter(
    const Place& place) const {
  const Place* nearest = nullptr;
  for (const ClassQueue& queue : queues_) {
    const auto it = queue.by_address.upper_bound(place);
    if (it != queue.by_address.end() &&
        (nearest == nullptr || *it < *nearest)) {
      nearest = &*it;
    }
  }
  return nearest == nullptr ? nullptr : &pending_.find(nearest->id)->second;
}

// Widens the read so that it holds the next request too; false, and the read as
// it was, if a limit forbids that.
bool ElevatorScheduler::Grow(ScheduledRead& read, const Pending& next,
                             uint64_t memory_size_bytes_max) const {
  const ScheduledRequest& request = next.request;
  const uint64_t end = EndOf(read.address, read.size_bytes);
  if (request.address.fd != read.address.fd ||
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
  read.waited += now - it->second.pushed_at;
  read.request_ids.push_back(request_id);
  Dequeue(it->second);
  pending_.erase(it);
}

void ElevatorScheduler::AccountFor(const ScheduledRead& read,
                                   DeviceAddress last) {
  in_flight_.insert(read.id);
  for (ClassQueue& queue : queues_) {
    if (!queue.by_address.empty()) {
      ++queue.passed_over;
    }
  }
  ClassQueue& queue = queues_[IndexOf(read.fetch_class)];
  queue.passed_over = 0;
  ++queue.reads;
  if (read.overdue) {
    queue.reads_since_overdue = 0;
    return;
  }
  ++queue.reads_since_overdue;
  // Past the last place that was served, so that the sweep advances however
  // often one block is asked for again.
  queue.head = {last.fd, FileOffset{last.offset.value + 1}};
}

}  // namespace quire
