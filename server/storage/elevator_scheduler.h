// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_STORAGE_ELEVATOR_SCHEDULER_H_
#define QUIRE_SERVER_STORAGE_ELEVATOR_SCHEDULER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"

#include "server/storage/scheduler.h"

namespace quire {

// The batch mode of the RLZ paper (section 3: sort the queries by address) made
// continuous: a circular one-way elevator for each class of requests.
//
// Order. Within a class reads leave by ascending address from the last one
// served, then wrap to the lowest. Requests of any class that lie in, or little
// behind, a read ride along.
//
// Waiting. A sweep can be prolonged by arrivals ahead of it, so it does not
// bound the wait by itself. A request that found n others of its class waiting
// is overdue after 2n + 64 reads of its class, and every fourth read of a class
// goes to the most overdue request, without moving the sweep: so it leaves
// within 6n + 68 reads of its class (the argument is below). The
// bound grows with the backlog, as it must: a fixed one turns the elevator into
// a queue as soon as it is under load.
//
// Classes. Interactive before batch before scan, but a class that waits is
// passed over by at most 9 reads (batch) or 32 (scan) in a row.
//
// All of it costs O(log n) for a request.
// Thread-compatible.
class ElevatorScheduler : public Scheduler {
 public:
  struct Options {
    // Requests that may wait; past it Push() fails.
    uint32_t pending_requests_max = 1 << 17;
    // Larger reads than this serve one request alone.
    uint32_t read_size_bytes_max = 1 << 20;
    // The widest gap between two requests that is read through: below it,
    // reading costs less than seeking (47 KB on a 5400 rpm disk).
    uint32_t gap_size_bytes_max = 64 << 10;
    // The memory that a read of so many bytes takes for its buffer.
    uint64_t (*buffer_memory_size_bytes)(uint64_t) = [](uint64_t size_bytes) {
      return size_bytes;
    };
  };

  // kWaitBoundFactor * n + kWaitBoundBase reads of a class at most until a
  // request leaves that found n others there. Why: let it be overdue at read T
  // of its class. Those that go before it then have an earlier deadline, so of
  // those that arrived after it the last one found at most n waiting: at most n
  // are left at T in all, each takes at most kOverdueInterval reads, and
  // whatever arrives later has a later deadline.
  static constexpr uint64_t kOverdueFactor = 2;
  static constexpr uint64_t kOverdueBase = 64;
  static constexpr uint64_t kOverdueInterval = 4;
  static constexpr uint64_t kWaitBoundFactor =
      kOverdueFactor + kOverdueInterval;
  static constexpr uint64_t kWaitBoundBase = kOverdueBase + kOverdueInterval;

  // By FetchClass: reads of other classes in a row, while one of this waits,
  // after which it is its turn. A batch read may find scan's turn before it.
  static constexpr std::array<uint64_t, 3> kPassedOverMax = {~uint64_t{0}, 8,
                                                             32};

  explicit ElevatorScheduler(const Options& options) : options_(options) {}

  absl::Status Push(SchedulerTime now,
                    const ScheduledRequest& request) override;
  bool Cancel(uint64_t request_id) override;
  void Promote(uint64_t request_id, FetchClass fetch_class) override;
  std::vector<ScheduledRead> Dispatch(SchedulerTime now,
                                      const DispatchLimits& limits) override;
  void Complete(SchedulerTime now, uint64_t read_id) override;

  size_t pending_requests() const override { return pending_.size(); }

  size_t reads_in_flight() const override { return in_flight_.size(); }

 private:
  static constexpr size_t kClassCount = 3;

  struct Pending {
    ScheduledRequest request;
    SchedulerTime pushed_at{0};
    // In reads of the request's class since the start.
    uint64_t deadline = 0;
  };

  // By address, then by id: several requests may have one address.
  struct Place {
    DeviceAddress address;
    uint64_t id = 0;
    auto operator<=>(const Place&) const = default;
  };

  struct ClassQueue {
    absl::btree_set<Place> by_address;
    // (deadline, id).
    absl::btree_set<std::pair<uint64_t, uint64_t>> by_deadline;
    // Where the sweep goes on.
    DeviceAddress head;
    uint64_t reads = 0;
    uint64_t reads_since_overdue = 0;
    // Reads of other classes since the last of this one, while one waited.
    uint64_t passed_over = 0;
  };

  struct Choice {
    uint64_t request_id = 0;
    bool overdue = false;
  };

  static size_t IndexOf(FetchClass fetch_class) {
    return static_cast<size_t>(fetch_class);
  }

  void Enqueue(Pending& pending);
  void Dequeue(const Pending& pending);
  // REQUIRES: a request waits.
  size_t ChooseClass() const;
  // REQUIRES: a request waits in the queue.
  static Choice ChooseRequest(const ClassQueue& queue);
  // The nearest request behind the place in any class, or null.
  const Pending* NextAfter(const Place& place) const;
  bool Grow(ScheduledRead& read, const Pending& next,
            uint64_t memory_size_bytes_max) const;
  void Take(SchedulerTime now, uint64_t request_id, ScheduledRead& read);
  void AccountFor(const ScheduledRead& read, DeviceAddress last);

  const Options options_;
  absl::flat_hash_map<uint64_t, Pending> pending_;
  std::array<ClassQueue, kClassCount> queues_;
  absl::flat_hash_set<uint64_t> in_flight_;
  uint64_t next_read_id_ = 1;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_ELEVATOR_SCHEDULER_H_
