// SPDX-License-Identifier: GPL-3.0-or-later
//
// Chooses the next device reads and their order: the policy between waiting
// requests and a device of limited depth.
#ifndef QUIRE_SERVER_STORAGE_SCHEDULER_SCHEDULER_H_
#define QUIRE_SERVER_STORAGE_SCHEDULER_SCHEDULER_H_

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "absl/status/status.h"

#include "codecs/base/positions.h"
#include "server/storage/base/block_types.h"

namespace quire {

// Time since a start that the caller chooses, the same for all calls; never
// decreases. A parameter, so that the same policy runs in real and in virtual
// time.
using SchedulerTime = std::chrono::nanoseconds;

// A byte of a file, in elevator order: by position on the device if known.
// Addresses without position come first, by file and offset.
struct DeviceAddress {
  int fd = -1;
  FileOffset offset;
  std::optional<uint64_t> physical = std::nullopt;

  bool operator==(const DeviceAddress&) const = default;

  std::strong_ordering operator<=>(const DeviceAddress& other) const {
    return std::tie(physical, fd, offset) <=>
           std::tie(other.physical, other.fd, other.offset);
  }
};

struct ScheduledRequest {
  // Chosen by the caller; unique among waiting requests.
  uint64_t id = 0;
  DeviceAddress address;
  uint32_t size_bytes = 0;
  // Memory that the request needs in addition to the read's buffer, from its
  // dispatch until the caller frees it.
  uint64_t memory_size_bytes = 0;
  FetchClass fetch_class = FetchClass::kInteractive;
  // Identifies the requester; clients with few requests do not wait for those
  // with many.
  uint64_t client_id = 0;
  // Up to this offset the bytes are contiguous on the device as in the file. A
  // read that begins in this request serves none that ends after it.
  FileOffset contiguous_end{std::numeric_limits<uint64_t>::max()};
};

// One read for the device on behalf of several requests.
struct ScheduledRead {
  // Identifies the read in Complete(); never 0.
  uint64_t id = 0;
  DeviceAddress address;
  uint32_t size_bytes = 0;
  // Memory of the read's buffer and of all its requests.
  uint64_t memory_size_bytes = 0;
  // The class whose turn it was; requests of others may ride along.
  FetchClass fetch_class = FetchClass::kInteractive;
  // The drive must serve it before reads that are not urgent.
  bool urgent = false;
  // Out of the sweep's order, because a request waited too long.
  bool overdue = false;
  // Sum of the waits of its requests, since their Push().
  SchedulerTime waited{0};
  // By ascending address. Each request is inside the read.
  std::vector<uint64_t> request_ids;
};

struct DispatchLimits {
  // Reads that the device accepts now.
  uint32_t reads_max = 0;
  // Limit for the sum of their memory_size_bytes.
  uint64_t memory_size_bytes_max = 0;
  // Set if no read in flight could free memory: the first read may then exceed
  // the limit if it serves one request alone. Otherwise that request would
  // starve.
  bool at_least_one = false;
};

// Requests and reads of one device. A pure state machine: no threads, clock or
// I/O. Each request is dispatched in exactly one read or cancelled; each read
// is completed once. Thread-compatible.
class Scheduler {
 public:
  virtual ~Scheduler() = default;

  // REQUIRES: request.size_bytes > 0; address + size does not overflow.
  // Errors: ResourceExhausted  the queue is full; try later.
  virtual absl::Status Push(SchedulerTime now,
                            const ScheduledRequest& request) = 0;

  // Withdraws a waiting request; false if none has this id.
  virtual bool Cancel(uint64_t request_id) = 0;

  // Moves a waiting request to a class that is served earlier; no effect if its
  // class is as early. It counts as new there.
  virtual void Promote(uint64_t request_id, FetchClass fetch_class) = 0;

  // Returns the reads to make now, in order; none if the limits, or a policy
  // that waits for more requests, forbid it. Call it again after each Push()
  // and Complete(), and when memory becomes free.
  virtual std::vector<ScheduledRead> Dispatch(SchedulerTime now,
                                              const DispatchLimits& limits) = 0;

  // Records the end of a read, successful or not; policies learn the device's
  // speed from it.
  virtual void Complete(SchedulerTime now, uint64_t read_id) = 0;

  // True if the last Dispatch() omitted a read because memory_size_bytes_max
  // was too small.
  virtual bool lacks_memory() const { return false; }

  // Waiting requests, and reads dispatched but not completed.
  virtual size_t pending_requests() const = 0;
  virtual size_t reads_in_flight() const = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_SCHEDULER_SCHEDULER_H_
