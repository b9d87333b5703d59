// SPDX-License-Identifier: GPL-3.0-or-later
//
// The drives that a plan can be for, and their rates of reads of one size, from
// the models in server/storage/model.
#ifndef QUIRE_SERVER_PLANNER_DRIVE_PLAN_H_
#define QUIRE_SERVER_PLANNER_DRIVE_PLAN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace quire {

struct PlannedDrive {
  enum class Kind { kHardDisk, kSolidState, kObjectStore };

  Kind kind = Kind::kSolidState;
  // For the user: "hdd", "ssd", "s3:...", or the path and its drive.
  std::string name;
  // For an object store.
  double latency_seconds = 0;
  double bytes_per_second = 0;
};

// Parses "hdd", "ssd", "s3:LATENCY,RATE" such as s3:30ms,200MB, or a path,
// whose kind of drive the kernel reports.
// Errors: InvalidArgument  none of these; the message lists them.
absl::StatusOr<PlannedDrive> ParseDrive(const std::string& text);

// Returns the rate of reads of `read_bytes` at random offsets in
// `extent_bytes`, per second, with 64 of them queued. Simulates in virtual
// time; takes some milliseconds.
double RandomReadsPerSecond(const PlannedDrive& drive, uint64_t read_bytes,
                            uint64_t extent_bytes);

}  // namespace quire

#endif  // QUIRE_SERVER_PLANNER_DRIVE_PLAN_H_
