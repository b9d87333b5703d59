// SPDX-License-Identifier: GPL-3.0-or-later
//
// Storage's report about one drive, for the log and for metrics.
#ifndef QUIRE_SERVER_STORAGE_FETCH_DRIVE_DESCRIPTION_H_
#define QUIRE_SERVER_STORAGE_FETCH_DRIVE_DESCRIPTION_H_

#include <cstdint>
#include <string>

#include "server/storage/base/duration_histogram.h"
#include "server/storage/device/drive_kind.h"

namespace quire {

// One drive as the store uses it.
struct DriveDescription {
  DriveInfo drive;
  // "io_uring", "pread", or "model:" and the drive's name.
  std::string engine;
  // Urgent reads are marked as such for the drive.
  bool uses_priorities = false;
  // Why the engine is not io_uring, or priorities are not used, although
  // possible; empty otherwise.
  std::string note;
};

struct DriveStats {
  std::string name;
  uint64_t reads = 0;
  uint64_t read_bytes = 0;
  uint64_t errors = 0;
  // For each read, the mean time of its requests from their fetch until it
  // started.
  DurationHistogram queue_waits;
  // For each operation of the drive, from its start to its result.
  DurationHistogram read_durations;
  // Levels: waiting requests, each perhaps for several fetches, and reads at
  // the drive.
  uint64_t queued_requests = 0;
  uint64_t reads_in_flight = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_FETCH_DRIVE_DESCRIPTION_H_
