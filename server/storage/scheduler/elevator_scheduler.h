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

// Decides between the classes and limits the reads in flight, over one
// SweepQueue per class, which orders requests within the class. Requests of any
// class inside a read, or shortly after it, ride along.
//
// Classes. Interactive reads go first. While one is at the device no batch or
// scan read begins, as the device would reorder them before it. Batch and scan
// reads have a share: eight reads between the end of one interactive read and
// the next, and eight whenever 24 interactive reads began in a row while they
// waited. A waiting scan is passed over by at most 8 batch reads in a row. A
// scrub read begins while nothing else waits or is at the device, or after 64
// reads of other classes.
//
// Priorities. If the drive itself serves urgent reads first, interactive reads
// are marked urgent while they are few, and other reads are not held back. The
// share of the others then counts completed reads: eight between the end of one
// visit of urgent reads and the start of the next, and a visit has at most 24.
//
// Depth. With many reads in flight a hard disk orders its queue by the position
// of the platter. While interactive reads arrive, other classes keep fewer in
// flight, so that interactive reads do not wait in the drive. If requests are
// so dense that reading on beats moving the arm, few reads in flight preserve
// the order.
// Thread-compatible.
class ElevatorScheduler : public Scheduler {
 public:
  struct Options {
    // Upper bound on waiting requests; above it Push() fails.
    uint32_t pending_requests_max = 1 << 17;
    // Larger reads serve one request alone.
    uint32_t read_size_bytes_max = 1 << 20;
    // Widest gap between two requests that is read through: reading it costs
    // less than a seek (47 KB on a 5400 rpm disk).
    uint32_t gap_size_bytes_max = 64 << 10;
    // Returns the buffer memory of a read of `size_bytes`.
    uint64_t (*buffer_memory_size_bytes)(uint64_t) = [](uint64_t size_bytes) {
      return size_bytes;
    };
    // Batch and scan reads in flight: without interactive traffic; and if an
    // interactive request arrived within `shared_window`.
    uint32_t depth = 32;
    uint32_t shared_depth = 7;
    SchedulerTime shared_window = std::chrono::seconds(2);
    // Reads of any class in flight if the next requests are closer together, on
    // average, than `dense_gap_size_bytes`.
    uint32_t dense_depth = 4;
    uint64_t dense_gap_size_bytes = 192 << 10;
    // Hold back other reads while an interactive read is at the device.
    bool hold = true;
    // For drives that serve urgent reads first; 0 for others. Interactive
    // requests are urgent unless more than this wait or are at the device.
    uint32_t urgent_max = 0;
    // Turns, as described above.
    uint32_t interactive_turn_max = 24;
    uint32_t others_turn = 8;

    // Options for a drive without moving parts: everything in flight at once.
    static Options SolidState() {
      Options options;
      options.gap_size_bytes_max = 16 << 10;
      options.depth = UINT32_MAX;
      options.shared_depth = UINT32_MAX;
      options.dense_depth = UINT32_MAX;
      options.hold = false;
      return options;
    }

    // Options for an object store. Many GETs are in flight, so that one more
    // costs less than the bytes of a wide gap: 256 ranges at random in 128 MiB
    // take 0.6 of the time that they take with gaps of 1 MiB, in 136 GETs
    // instead of 54.
    static Options ObjectStore() {
      Options options = SolidState();
      options.gap_size_bytes_max = 256 << 10;
      options.read_size_bytes_max = 4 << 20;
      return options;
    }

    // Options for a drive with an arm and priorities: depth 32 throughout.
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
  static constexpr size_t kClassCount = 4;
  static constexpr size_t kInteractive = 0;
  static constexpr size_t kBatch = 1;
  static constexpr size_t kScan = 2;
  static constexpr size_t kScrub = 3;
  static constexpr uint64_t kScanPassedOverMax = 8;
  static constexpr uint64_t kScrubPassedOverMax = 64;

  struct Pending {
    ScheduledRequest request;
    SchedulerTime pushed_at{0};
    SweepQueue::Entry entry;
  };

  static size_t IndexOf(FetchClass fetch_class) {
    return static_cast<size_t>(fetch_class);
  }

  void Enqueue(SchedulerTime now, Pending& pending);
  // Returns the class to read next; none if nothing waits or should begin.
  std::optional<size_t> ChooseClass(SchedulerTime now) const;
  // True if it is the turn of a waiting scrub read.
  bool IsScrubsTurn() const;
  bool OthersWait() const;
  // True if an interactive read begun now would be urgent, apart from the share
  // of the others.
  bool FewAreInteractive() const;
  std::optional<size_t> ChooseNextToUrgent() const;
  // Returns the next class among the others. REQUIRES: one of them waits.
  size_t ChooseOther() const;
  uint32_t DepthFor(size_t class_index, SchedulerTime now) const;
  // Returns the nearest request after the position in any class, or null.
  const Pending* NextAfter(const SweepQueue::Place& place) const;
  // Makes a read of the class's next request and those near it; nothing if it
  // needs more memory than is free.
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
  // Classes of the reads in flight.
  absl::flat_hash_map<uint64_t, size_t> in_flight_;
  size_t interactive_in_flight_ = 0;
  // Arrival of the last interactive request, if any.
  std::optional<SchedulerTime> interactive_at_;
  // Interactive reads in a row while others waited.
  uint32_t interactive_run_ = 0;
  // Reads of others before the next interactive one, and whether they may begin
  // while interactive reads are at the device.
  uint32_t others_left_ = 0;
  bool others_due_ = false;
  // Urgent reads of this visit, and reads of others that must complete before
  // the next.
  uint32_t visit_reads_ = 0;
  uint32_t others_owed_ = 0;
  // Batch reads since the last scan read, while a scan waited.
  uint64_t scan_passed_over_ = 0;
  // Reads of other classes since the last scrub read, while a scrub waited.
  uint64_t scrub_passed_over_ = 0;
  bool lacks_memory_ = false;
  uint64_t next_read_id_ = 1;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_SCHEDULER_ELEVATOR_SCHEDULER_H_
