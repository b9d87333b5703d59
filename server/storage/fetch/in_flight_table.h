// SPDX-License-Identifier: GPL-3.0-or-later
//
// The blocks that are being fetched, and the fetches that wait for each.
#ifndef QUIRE_SERVER_STORAGE_FETCH_IN_FLIGHT_TABLE_H_
#define QUIRE_SERVER_STORAGE_FETCH_IN_FLIGHT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"

#include "server/storage/base/block_types.h"
#include "server/storage/fetch/block_fetch.h"
#include "server/storage/fetch/fetch_times.h"
#include "server/storage/scheduler/scheduler.h"

namespace quire {

class DriveQueue;

// A block from its first fetch until it is decoded. Its address does not change
// while it is in the table.
struct InFlightBlock {
  struct Waiter {
    FetchId id = 0;
    FetchDone done;
    uint32_t part = 0;
    // See BlockFetch::times; and the start of the fetch.
    std::shared_ptr<FetchTimes> times = {};
    SchedulerTime begun{0};
  };

  // The first fetch. Only its class changes, so that the rest may be read
  // without the table's lock.
  BlockFetch fetch;
  absl::InlinedVector<Waiter, 1> waiters;
  // Its read has been dispatched: its fetches can no longer be cancelled.
  bool at_device = false;
  // Its first read failed or gave damaged bytes. It is not read a third time
  // unless the second read was joint and failed.
  bool repeated = false;
  // A fetch asked for all parts.
  bool all_parts = false;
  // Set by the queue that the block waits in: that queue, and the scheduler's
  // request that has the block.
  DriveQueue* queue = nullptr;
  uint64_t request_id = 0;
  // Dispatch and end of its last read.
  SchedulerTime dispatched{0};
  SchedulerTime read_ended{0};
};

// At most one entry for each block: overlapping fetches of one block, or of its
// parts, share its entry, and so one read and one decoding. The table takes no
// lock, makes no callbacks and does no I/O. It returns removed objects, for the
// caller to notify and destroy without its lock.
// Thread-compatible: BlockStore guards it with its mutex.
class InFlightTable {
 public:
  struct Stats {
    // Fetches that found their block in flight.
    uint64_t joined_fetches = 0;
    uint64_t cancelled_fetches = 0;
    // Blocks that were read a second time, and those of them that succeeded.
    uint64_t repeated_blocks = 0;
    uint64_t recovered_blocks = 0;
    // Level: fetches whose block is not at a device.
    uint64_t queued_fetches = 0;
  };

  // A fetch that was withdrawn.
  struct Withdrawn {
    FetchDone done;
    // The block, removed from the table, if this was its last fetch; the caller
    // takes it out of its queue. Otherwise null.
    std::unique_ptr<InFlightBlock> abandoned;
  };

  // Null if the block is not in flight. Ignores the key's part.
  InFlightBlock* Find(const BlockKey& key) const;

  // Enters a block. The caller Join()s its first fetch and enqueues it.
  // REQUIRES: Find(fetch.key) is null.
  InFlightBlock& Begin(BlockFetch fetch);

  // Adds a fetch, which begins at `now`, to the block. The caller handles its
  // class.
  FetchId Join(InFlightBlock& block, const BlockFetch& fetch, FetchDone done,
               SchedulerTime now);

  // Withdraws a fetch. Returns nullopt if the id is unknown or has ended, or if
  // its block is at the device.
  std::optional<Withdrawn> Cancel(FetchId id);

  // Records that the block's read was dispatched.
  // REQUIRES: !block.at_device.
  void MarkAtDevice(InFlightBlock& block);

  // Counts the block's second read, which the caller starts.
  void MarkRepeated(InFlightBlock& block);

  // For a block that was read and is damaged: marks it as repeated and waiting
  // again; the caller enqueues it. Returns false without a change if it was
  // read twice already.
  // REQUIRES: block.at_device.
  bool ReturnToQueue(InFlightBlock& block);

  // Ends all fetches of a block, with its text if `succeeded`, and removes it.
  std::unique_ptr<InFlightBlock> EndAll(const InFlightBlock& block,
                                        bool succeeded);

  // Ends the fetches of `parts`, which ascend, with their text. If fetches of
  // other parts came too late to be decoded, the block stays in the table and
  // waits again: the caller enqueues it.
  // REQUIRES: block.at_device.
  std::unique_ptr<InFlightBlock> End(InFlightBlock& block,
                                     std::span<const uint32_t> parts);

  // Removes all blocks that are not at a device; their fetches count as
  // cancelled. The caller empties the queues.
  std::vector<std::unique_ptr<InFlightBlock>> CancelQueued();

  // Fetches that have not ended.
  size_t fetch_count() const { return fetches_.size(); }

  const Stats& stats() const { return stats_; }

 private:
  std::unique_ptr<InFlightBlock> Remove(const BlockKey& key);

  FetchId next_id_ = 1;
  absl::flat_hash_map<BlockKey, std::unique_ptr<InFlightBlock>> blocks_;
  absl::flat_hash_map<FetchId, InFlightBlock*> fetches_;
  Stats stats_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_FETCH_IN_FLIGHT_TABLE_H_
