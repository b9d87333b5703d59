// SPDX-License-Identifier: GPL-3.0-or-later
//
// Which device reads to make next, and in what order: the policy between the
// requests that wait and a device that can take some of them.
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
// goes back. Passed in, so that the same policy runs in real and in virtual
// time.
using SchedulerTime = std::chrono::nanoseconds;

// A byte of a file, and what the elevator sorts by: its place on the device
// where that is known; what has none goes before, by file and offset.
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
  // Chosen by the caller; no two that wait have the same.
  uint64_t id = 0;
  DeviceAddress address;
  uint32_t size_bytes = 0;
  // Memory that the request takes besides the device read's own buffer, from
  // its dispatch until the caller says it is free.
  uint64_t memory_size_bytes = 0;
  FetchClass fetch_class = FetchClass::kInteractive;
  // The requester; those with few requests do not wait for those with many.
  uint64_t client_id = 0;
  // Up to here in the file the device's bytes follow each other as the file's
  // do: no read that begins in this request serves one that ends beyond.
  FileOffset contiguous_end{std::numeric_limits<uint64_t>::max()};
};

// One read for the device, on behalf of all requests named.
struct ScheduledRead {
  // Names the read in Complete(); never 0.
  uint64_t id = 0;
  DeviceAddress address;
  uint32_t size_bytes = 0;
  // The device read's buffer and all requests' memory.
  uint64_t memory_size_bytes = 0;
  // The class whose turn it was, though others may ride along.
  FetchClass fetch_class = FetchClass::kInteractive;
  // The drive is to serve it before those that are not.
  bool urgent = false;
  // Out of the sweep's order, because a request waited too long.
  bool overdue = false;
  // Of all its requests together, since their Push().
  SchedulerTime waited{0};
  // By ascending address. Each lies wholly inside the read.
  std::vector<uint64_t> request_ids;
};

struct DispatchLimits {
  // Reads that the device can take now.
  uint32_t reads_max = 0;
  // The sum of their memory_size_bytes.
  uint64_t memory_size_bytes_max = 0;
  // Nothing is in flight that could free memory: the first read may exceed the
  // bound if it serves one request alone, or that one would wait for ever.
  bool at_least_one = false;
};

// The reads of one device. A pure state machine: no threads, no clock, no I/O.
// A request is pushed, then either dispatched in exactly one read or cancelled;
// each read is completed once. Thread-compatible.
class Scheduler {
 public:
  virtual ~Scheduler() = default;

  // REQUIRES: request.size_bytes > 0; address + size does not overflow.
  // Errors: ResourceExhausted  the queue is full; try later.
  virtual absl::Status Push(SchedulerTime now,
                            const ScheduledRequest& request) = 0;

  // Withdraws a request that still waits; false if none has this id.
  virtual bool Cancel(uint64_t request_id) = 0;

  // Moves a request that still waits to a class that is served earlier; nothing
  // happens if it is of such a class already. It counts as new there.
  virtual void Promote(uint64_t request_id, FetchClass fetch_class) = 0;

  // The reads to make now, in this order; none if the limits, or a policy that
  // waits for company, forbid it. To be asked again after each Push(),
  // Complete(), and when memory became free.
  virtual std::vector<ScheduledRead> Dispatch(SchedulerTime now,
                                              const DispatchLimits& limits) = 0;

  // A read ended, well or not: what a policy learns the device's speed from.
  virtual void Complete(SchedulerTime now, uint64_t read_id) = 0;

  // Whether the last Dispatch() left out a read because memory_size_bytes_max
  // did not suffice for it.
  virtual bool lacks_memory() const { return false; }

  // Requests that wait, and reads dispatched but not completed.
  virtual size_t pending_requests() const = 0;
  virtual size_t reads_in_flight() const = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_SCHEDULER_SCHEDULER_H_
