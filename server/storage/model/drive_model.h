// SPDX-License-Identifier: GPL-3.0-or-later
//
// Drives as arithmetic: the time that a real one would take for the same reads,
// in the caller's own time.
#ifndef QUIRE_SERVER_STORAGE_MODEL_DRIVE_MODEL_H_
#define QUIRE_SERVER_STORAGE_MODEL_DRIVE_MODEL_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace quire {

// Time since a start that the caller chooses; never decreases.
using DriveTime = std::chrono::nanoseconds;

struct DriveCommand {
  // Chosen by the caller; unique in the drive.
  uint64_t id = 0;
  // In bytes from the drive's beginning, modulo its capacity.
  uint64_t address = 0;
  uint32_t size_bytes = 0;
  // Served before commands that are not urgent, in drives with priorities.
  bool urgent = false;
};

// Commands enter by Submit() and leave by Advance(); in between the drive
// orders them as its firmware would. Equal calls give equal times.
// Thread-compatible.
class DriveModel {
 public:
  virtual ~DriveModel() = default;

  // REQUIRES: `now` is not earlier than in any previous call, and Advance(now)
  // has been called; command.size_bytes > 0.
  virtual void Submit(DriveTime now, const DriveCommand& command) = 0;

  // Returns when the next command ends if none is submitted until then; nothing
  // if the drive is empty.
  virtual std::optional<DriveTime> NextEnd() const = 0;

  // Returns the commands that have ended by `now`, in the order of their end.
  virtual std::vector<uint64_t> Advance(DriveTime now) = 0;

  // Number of commands in the drive.
  virtual size_t size() const = 0;

  virtual uint64_t capacity_size_bytes() const = 0;

  // True if an arm has to move.
  virtual bool rotational() const = 0;

  // True if the drive heeds `urgent`.
  virtual bool has_priorities() const { return false; }
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_MODEL_DRIVE_MODEL_H_
