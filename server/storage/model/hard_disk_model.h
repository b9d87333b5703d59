// SPDX-License-Identifier: GPL-3.0-or-later
//
// A hard disk in virtual time: arm, platters, read-ahead and its command queue.
#ifndef QUIRE_SERVER_STORAGE_MODEL_HARD_DISK_MODEL_H_
#define QUIRE_SERVER_STORAGE_MODEL_HARD_DISK_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "server/storage/model/disk_geometry.h"
#include "server/storage/model/drive_model.h"

namespace quire {

// Times in milliseconds; all are assumptions about firmware.
struct HardDiskOptions {
  DiskGeometry geometry;
  // Time on the bus, and until the arm moves, of a command for an idle drive.
  double host_ms = 0.05;
  double command_ms = 0.20;
  // Time between commands if the next is already in the drive.
  double turnaround_ms = 0.05;
  // Size of the queue that the drive orders (native command queueing).
  uint32_t queue_depth_max = 32;
  // The drive takes the command that it can begin to read first, and needs this
  // margin to catch a turn: 0.2 is good firmware, 1.0 weak.
  double guard_ms = 0.2;
  // Value of a millisecond of waiting in milliseconds of positioning; prevents
  // starvation in the drive.
  double ageing = 0.0075;
  // True if urgent commands in the drive's queue go first, in the best order
  // among themselves (NCQ priority, ATA ACS-4: "should be processed before").
  bool priorities = false;
  // Read-ahead while no command waits.
  uint64_t read_ahead_size_bytes = 2 << 20;
};

class HardDiskModel final : public DriveModel {
 public:
  explicit HardDiskModel(const HardDiskOptions& options);

  void Submit(DriveTime now, const DriveCommand& command) override;
  std::optional<DriveTime> NextEnd() const override;
  std::vector<uint64_t> Advance(DriveTime now) override;

  size_t size() const override {
    return queue_.size() + (active_.has_value() ? 1 : 0);
  }

  uint64_t capacity_size_bytes() const override {
    return layout_.capacity_size_bytes();
  }

  bool rotational() const override { return true; }

  bool has_priorities() const override { return options_.priorities; }

  // Time to read `size_bytes` sequentially from the drive's outer edge: the
  // limit of every scan.
  double SequentialMs(uint64_t size_bytes) const;

 private:
  struct Waiting {
    DriveCommand command;
    DiskPlace place;
    double since_ms = 0;
  };

  struct Active {
    uint64_t id = 0;
    double end_ms = 0;
  };

  // The drive reads ahead after the last command, up to a limit.
  struct ReadAhead {
    uint64_t start = 0;
    DiskPlace place;
    // Time at which `start` passed under the head.
    double since_ms = 0;
  };

  // Returns when the position first passes the head at or after `at`.
  double NextPass(const DiskPlace& place, double at_ms) const;
  // Returns when the command's last byte is read if it begins now, by a seek or
  // from read-ahead.
  double ReadyMs(const Waiting& waiting, double now_ms, double guard_ms) const;
  // The time from read-ahead alone; nothing if the command is not within it.
  std::optional<double> ReadOnMs(const DriveCommand& command,
                                 double now_ms) const;
  // Time for which the read-ahead has paused at its limit.
  double PausedMs(double now_ms) const;
  // Begins the best of the waiting commands.
  void Begin(double now_ms);
  void Serve(const Waiting& chosen, double start_ms);

  const HardDiskOptions options_;
  const DiskLayout layout_;
  DiskPlace arm_;
  std::vector<Waiting> queue_;
  std::optional<Active> active_;
  ReadAhead read_ahead_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_MODEL_HARD_DISK_MODEL_H_
