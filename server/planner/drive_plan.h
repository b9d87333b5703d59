// SPDX-License-Identifier: GPL-3.0-or-later
//
// The drives that a plan may be for, and what they do with reads of one size,
// from the models in server/storage/model.
#ifndef QUIRE_SERVER_PLANNER_DRIVE_PLAN_H_
#define QUIRE_SERVER_PLANNER_DRIVE_PLAN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace quire {

struct PlannedDrive {
  enum class Kind { kHardDisk, kSolidState, kObjectStore };

  Kind kind = Kind::kSolidState;
  // For the user: "hdd", "ssd", "s3:...", or the path with what it lies on.
  std::string name;
  // Of an object store.
  double latency_seconds = 0;
  double bytes_per_second = 0;
};

// "hdd", "ssd", "s3:LATENCY,RATE" such as s3:30ms,200MB, or a path, of whose
// drive the kernel says which kind it is.
// Errors: InvalidArgument  none of these; the message says what is possible.
absl::StatusOr<PlannedDrive> ParseDrive(const std::string& text);

// Reads per second of `read_bytes` at random places in `extent_bytes`, with 64
// of them waiting. In virtual time; takes some milliseconds.
double RandomReadsPerSecond(const PlannedDrive& drive, uint64_t read_bytes,
                            uint64_t extent_bytes);

}  // namespace quire

#endif  // QUIRE_SERVER_PLANNER_DRIVE_PLAN_H_
