// SPDX-License-Identifier: GPL-3.0-or-later
//
// Requests of one class in the order of a circular one-way elevator.
#ifndef QUIRE_SERVER_STORAGE_SCHEDULER_SWEEP_QUEUE_H_
#define QUIRE_SERVER_STORAGE_SCHEDULER_SWEEP_QUEUE_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"

#include "server/storage/scheduler/scheduler.h"

namespace quire {

// Order. Requests leave by ascending address from the last one served, then
// wrap to the lowest ("BATCH" of "Access Time Tradeoffs in Archive
// Compression", section 3, made continuous). Requests that arrive ahead of the
// sweep join it.
//
// Waiting. A sweep closes once it has served 64 requests plus twice the most
// that waited at once during it. Later arrivals wait for the next sweep. A
// sweep therefore serves at most 3 M + 64 requests, where M is the most that
// wait at once, and a request leaves within two sweeps. The bound grows with
// the backlog, as it must: a fixed one turns the elevator into a queue under
// load.
//
// Clients. A client with less than half of its share of the queue does not wait
// for the sweep of the others. Its oldest request becomes overdue once 64 reads
// passed it, plus two for each request that clients would have if all had as
// many. Every fourth read may be an overdue one, without moving the sweep.
//
// All operations take O(log n) per request.
// Thread-compatible.
class SweepQueue {
 public:
  struct Entry {
    uint64_t id = 0;
    DeviceAddress address;
    uint64_t client_id = 0;
    // Set by Push(), like the fields below. In order of arrival.
    uint64_t sequence = 0;
    // Waits for the next sweep.
    bool deferred = false;
  };

  struct Choice {
    uint64_t id = 0;
    bool overdue = false;
  };

  // By address, then by id: requests may share an address.
  struct Place {
    DeviceAddress address;
    uint64_t id = 0;
    auto operator<=>(const Place&) const = default;
  };

  // See the class comment.
  static constexpr uint64_t kSweepFactor = 2;
  static constexpr uint64_t kSweepBase = 64;
  static constexpr uint64_t kOverdueInterval = 4;
  static constexpr uint64_t kOverdueBase = 64;
  static constexpr uint64_t kOverdueFactor = 2;

  // Upper bound on reads of this class until a request leaves, if at most M
  // waited at once meanwhile: two sweeps, and one overdue read for each three.
  static constexpr uint64_t ReadsUntilServedMax(uint64_t waiting_max) {
    const uint64_t sweep = (kSweepFactor + 1) * waiting_max + kSweepBase;
    return 2 * sweep * kOverdueInterval / (kOverdueInterval - 1) + 2;
  }

  size_t size() const { return current_.size() + deferred_.size(); }

  bool empty() const { return size() == 0; }

  void Push(Entry& entry);
  // REQUIRES: the queue has the entry.
  void Erase(const Entry& entry);

  // Returns the next request to read. REQUIRES: !empty().
  Choice Next();

  // Returns the nearest request after the position, of this sweep or the next;
  // or null.
  const Place* After(const Place& place) const;

  // Records that a read of this class began, with its last request at `last`.
  void CountRead(DeviceAddress last, bool overdue);

  // Mean distance between up to 32 requests ahead; nothing if there are fewer,
  // or if they are in several files without known positions.
  std::optional<uint64_t> MeanGapAhead() const;

 private:
  static constexpr int kGapSample = 32;
  static constexpr int kClientsLookedAt = 4;

  struct Arrival {
    uint64_t sequence = 0;
    uint64_t id = 0;
    // Reads of this class before its arrival.
    uint64_t reads_before = 0;

    auto operator<=>(const Arrival& other) const {
      return sequence <=> other.sequence;
    }

    bool operator==(const Arrival& other) const {
      return sequence == other.sequence;
    }
  };

  // Requests of one client by age.
  using ClientRequests = absl::btree_set<Arrival>;

  std::optional<uint64_t> FindOverdue() const;
  void Wrap();

  absl::btree_set<Place> current_;
  absl::btree_set<Place> deferred_;
  // Position at which the sweep continues.
  DeviceAddress head_;
  uint64_t sweep_served_ = 0;
  uint64_t sweep_peak_ = 0;
  uint64_t reads_ = 0;
  uint64_t reads_since_overdue_ = 0;
  uint64_t next_sequence_ = 1;
  absl::flat_hash_map<uint64_t, ClientRequests> clients_;
  // (requests, client)
  absl::btree_set<std::pair<size_t, uint64_t>> clients_by_size_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_SCHEDULER_SWEEP_QUEUE_H_
