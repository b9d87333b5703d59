// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_STORAGE_SCHEDULER_ELEVATOR_SCHEDULER_H_
#define QUIRE_SERVER_STORAGE_SCHEDULER_ELEVATOR_SCHEDULER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

#include "server/storage/scheduler/scheduler.h"
#include "server/storage/scheduler/sweep_queue.h"

namespace quire {

// Whose turn it is and how much the device gets, over one SweepQueue for each
// class, which has the order within the class. Requests of any class that lie
// in, or little behind, a read ride along.
//
// Classes. Interactive reads go first, and while one is at the device no batch
// or scan read is begun, as the device would reorder them before it. But the
// others have a share: eight reads between one interactive read's end and the
// next one's beginning, and eight whenever 24 interactive reads were begun in a
// row while others waited. Among the others a scan that waits is passed over by
// at most 8 batch reads in a row.
//
// Priorities. Where the drive itself serves urgent reads first, interactive
// reads are marked so as long as they are few, and others need not stay away.
// The share of the others is then counted by what the drive has done: eight
// reads between the end of one visit of urgent reads and the next one's
// beginning, and a visit has at most 24.
//
// Depth. Many in flight let a hard disk order its queue by where the platter
// is; while interactive reads come, others keep fewer in flight, or these would
// wait behind them in the drive. Where requests lie so densely that reading on
// beats moving the arm, few in flight keep the order.
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
    // Reads of batches and scans in flight: alone; and when an interactive
    // request came within `shared_window`.
    uint32_t depth = 32;
    uint32_t shared_depth = 7;
    SchedulerTime shared_window = std::chrono::seconds(2);
    // Reads of any class in flight where the next requests lie closer to each
    // other, on average, than `dense_gap_size_bytes`.
    uint32_t dense_depth = 4;
    uint64_t dense_gap_size_bytes = 192 << 10;
    // Whether interactive reads at the device keep others from it.
    bool hold = true;
    // For a drive that serves urgent reads first; 0 for others. Interactive
    // requests are urgent unless there are more of them than this, waiting and
    // at the device.
    uint32_t urgent_max = 0;
    // Turns, as said above.
    uint32_t interactive_turn_max = 24;
    uint32_t others_turn = 8;

    // What suits a drive without moving parts: everything in flight at once.
    static Options SolidState() {
      Options options;
      options.gap_size_bytes_max = 16 << 10;
      options.depth = UINT32_MAX;
      options.shared_depth = UINT32_MAX;
      options.dense_depth = UINT32_MAX;
      options.hold = false;
      return options;
    }

    // For a drive with an arm and priorities (disk-model: depth 32 throughout).
    static Options WithPriorities() {
      Options options;
      options.shared_depth = options.depth;
      options.hold = false;
      options.urgent_max = 8;
      return options;
    }
  };

  explicit ElevatorScheduler(const Options& options) : options_(options) {}

  absl::Status Push(SchedulerTime now,
                    const ScheduledRequest& request) override;
  bool Cancel(uint64_t request_id) override;
  void Promote(uint64_t request_id, FetchClass fetch_class) override;
  std::vector<ScheduledRead> Dispatch(SchedulerTime now,
                                      const DispatchLimits& limits) override;
  void Complete(SchedulerTime now, uint64_t read_id) override;

  bool lacks_memory() const override { return lacks_memory_; }

  size_t pending_requests() const override { return pending_.size(); }

  size_t reads_in_flight() const override { return in_flight_.size(); }

 private:
  static constexpr size_t kClassCount = 3;
  static constexpr size_t kInteractive = 0;
  static constexpr size_t kBatch = 1;
  static constexpr size_t kScan = 2;
  static constexpr uint64_t kScanPassedOverMax = 8;

  struct Pending {
    ScheduledRequest request;
    SchedulerTime pushed_at{0};
    SweepQueue::Entry entry;
  };

  static size_t IndexOf(FetchClass fetch_class) {
    return static_cast<size_t>(fetch_class);
  }

  void Enqueue(SchedulerTime now, Pending& pending);
  // The class to read for now; none if nothing waits or should be begun.
  std::optional<size_t> ChooseClass(SchedulerTime now) const;
  bool OthersWait() const;
  // Whether an interactive read begun now would be urgent, but for the others'
  // share.
  bool FewAreInteractive() const;
  std::optional<size_t> ChooseNextToUrgent() const;
  // Of the others, the one whose turn it is. REQUIRES: one of them waits.
  size_t ChooseOther() const;
  uint32_t DepthFor(size_t class_index, SchedulerTime now) const;
  // The nearest request behind the place in any class, or null.
  const Pending* NextAfter(const SweepQueue::Place& place) const;
  // A read of the class's next request, joined by those that lie near; nothing
  // if it needs more memory than there is.
  std::optional<ScheduledRead> MakeRead(SchedulerTime now, size_t class_index,
                                        uint64_t memory_size_bytes_max,
                                        bool at_any_cost);
  bool Grow(ScheduledRead& read, const Pending& next, FileOffset contiguous_end,
            uint64_t memory_size_bytes_max) const;
  void Take(SchedulerTime now, uint64_t request_id, ScheduledRead& read);
  void CountTurn(size_t class_index);
  void EndVisit();

  const Options options_;
  absl::flat_hash_map<uint64_t, Pending> pending_;
  std::array<SweepQueue, kClassCount> queues_;
  // Reads in flight and their class.
  absl::flat_hash_map<uint64_t, size_t> in_flight_;
  size_t interactive_in_flight_ = 0;
  // When an interactive request came last, if one ever did.
  std::optional<SchedulerTime> interactive_at_;
  // Interactive reads in a row while others waited.
  uint32_t interactive_run_ = 0;
  // What others may read before the next interactive one, and whether they may
  // while interactive reads are at the device.
  uint32_t others_left_ = 0;
  bool others_due_ = false;
  // Urgent reads of this visit, and reads of others to be done before the next.
  uint32_t visit_reads_ = 0;
  uint32_t others_owed_ = 0;
  // Batch reads since the last scan read, while one waited.
  uint64_t scan_passed_over_ = 0;
  bool lacks_memory_ = false;
  uint64_t next_read_id_ = 1;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_SCHEDULER_ELEVATOR_SCHEDULER_H_
