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

// Maps blocks to queues, and selects the drive to read next. Drives take turns,
// one read each, so that the fastest does not get all of a scarce memory. A
// drive that lacks memory keeps its turn until enough is free.
// Guarded by BlockStore's mutex, except where stated. Queues live as long as
// the set.
class DriveSet {
 public:
  // REQUIRES: Find(queue->name()) is null.
  void Add(std::unique_ptr<DriveQueue> queue);

  // Null if there is none of that name.
  DriveQueue* Find(const std::string& name) const;

  // Returns the queue of the file's drive, or the first one if that is not
  // known (null, or a drive that is not here).
  // REQUIRES: !empty().
  DriveQueue& QueueOf(const FilePlacement* placement) const;

  // Returns the reads to start now, of all drives; reads of one drive are
  // adjacent as far as turns allow.
  DriveReads Plan(SchedulerTime now);

  void DequeueAll();

  // True if reads are at any device.
  bool has_reads() const;

  // Called without the lock; no Submit() runs or follows.
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
