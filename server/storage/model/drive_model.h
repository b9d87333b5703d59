// SPDX-License-Identifier: GPL-3.0-or-later
//
// Drives that exist as arithmetic only: how long a real one would take for the
// same reads, in whatever time the caller keeps.
#ifndef QUIRE_SERVER_STORAGE_MODEL_DRIVE_MODEL_H_
#define QUIRE_SERVER_STORAGE_MODEL_DRIVE_MODEL_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace quire {

// Since a start that the caller chooses; never goes back.
using DriveTime = std::chrono::nanoseconds;

struct DriveCommand {
  // Chosen by the caller; no two in the drive have the same.
  uint64_t id = 0;
  // In bytes from the drive's beginning. Wraps around at its capacity.
  uint64_t address = 0;
  uint32_t size_bytes = 0;
  // Goes before those that are not, in drives that know priorities.
  bool urgent = false;
};

// Reads enter by Submit() and leave by Advance(); what is in between, the drive
// orders as its firmware would. The same calls give the same times.
// Thread-compatible.
class DriveModel {
 public:
  virtual ~DriveModel() = default;

  // REQUIRES: `now` is no earlier than in any call before, and Advance(now) has
  //           been called; command.size_bytes > 0.
  virtual void Submit(DriveTime now, const DriveCommand& command) = 0;

  // When the next command leaves if none is submitted until then; nothing if
  // the drive is empty.
  virtual std::optional<DriveTime> NextEnd() const = 0;

  // Commands that have ended by `now`, in the order of their end.
  virtual std::vector<uint64_t> Advance(DriveTime now) = 0;

  // Commands in the drive.
  virtual size_t size() const = 0;

  virtual uint64_t capacity_size_bytes() const = 0;

  // Whether an arm has to move.
  virtual bool rotational() const = 0;

  // Whether `urgent` means anything to it.
  virtual bool has_priorities() const { return false; }
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_MODEL_DRIVE_MODEL_H_
