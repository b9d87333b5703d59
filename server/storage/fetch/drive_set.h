// SPDX-License-Identifier: GPL-3.0-or-later
//
// The drives of one store.
#ifndef QUIRE_SERVER_STORAGE_FETCH_DRIVE_SET_H_
#define QUIRE_SERVER_STORAGE_FETCH_DRIVE_SET_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "server/storage/fetch/drive_queue.h"

namespace quire {

// Says which queue a block belongs to, and which drive may read next. Drives
// take turns, a read each, so that where memory is short the quickest does not
// get all of it. A drive that lacks memory keeps the turn until enough is free.
// Guarded by BlockStore's mutex, except where stated. Queues live as long as
// the set.
class DriveSet {
 public:
  // REQUIRES: Find(queue->name()) is null.
  void Add(std::unique_ptr<DriveQueue> queue);

  // Null if there is none of that name.
  DriveQueue* Find(const std::string& name) const;

  // The queue of the drive that a file lies on, or the first one if that is not
  // known (null, or a drive that is not here).
  // REQUIRES: !empty().
  DriveQueue& QueueOf(const FilePlacement* placement) const;

  // The reads to start now, of all drives: neighbours in the list where they
  // are of one drive, as far as turns allow.
  DriveReads Plan(SchedulerTime now);

  void DequeueAll();

  // Whether reads are at any device.
  bool has_reads() const;

  // Without the lock; no Submit() runs or follows.
  void CloseDevices();

  bool empty() const { return queues_.empty(); }

  // In the order in which they were added.
  const std::vector<std::unique_ptr<DriveQueue>>& queues() const {
    return queues_;
  }

 private:
  std::vector<std::unique_ptr<DriveQueue>> queues_;
  // Index of the queue whose turn it is.
  size_t turn_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_FETCH_DRIVE_SET_H_
