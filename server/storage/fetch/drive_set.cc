// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/fetch/drive_set.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace quire {

void DriveSet::Add(std::unique_ptr<DriveQueue> queue) {
  queues_.push_back(std::move(queue));
}

DriveQueue* DriveSet::Find(const std::string& name) const {
  for (const std::unique_ptr<DriveQueue>& queue : queues_) {
    if (queue->name() == name) {
      return queue.get();
    }
  }
  return nullptr;
}

DriveQueue& DriveSet::QueueOf(const FilePlacement* placement) const {
  DriveQueue* queue =
      placement == nullptr ? nullptr : Find(placement->place.drive.name);
  return queue == nullptr ? *queues_.front() : *queue;
}

DriveReads DriveSet::Plan(SchedulerTime now) {
  DriveReads reads;
  const auto busy_count =
      std::count_if(queues_.begin(), queues_.end(),
                    [](const auto& queue) { return queue->has_pending(); });
  if (busy_count == 0) {
    return reads;
  }
  // A single drive need not give up its turn after each read.
  const size_t reads_max =
      busy_count > 1 ? 1 : std::numeric_limits<uint32_t>::max();
  size_t idle_count = 0;
  while (idle_count < queues_.size()) {
    const size_t count_before = reads.size();
    if (!queues_[turn_]->Plan(now, reads_max, reads)) {
      break;
    }
    idle_count = reads.size() == count_before ? idle_count + 1 : 0;
    turn_ = (turn_ + 1) % queues_.size();
  }
  return reads;
}

void DriveSet::DequeueAll() {
  for (const std::unique_ptr<DriveQueue>& queue : queues_) {
    queue->DequeueAll();
  }
}

bool DriveSet::has_reads() const {
  return std::any_of(queues_.begin(), queues_.end(),
                     [](const auto& queue) { return queue->has_reads(); });
}

void DriveSet::CloseDevices() {
  for (const std::unique_ptr<DriveQueue>& queue : queues_) {
    queue->CloseDevice();
  }
}

}  // namespace quire
