// SPDX-License-Identifier: GPL-3.0-or-later
//
// Positions of a file on its device.
#ifndef QUIRE_SERVER_STORAGE_DEVICE_EXTENT_MAP_H_
#define QUIRE_SERVER_STORAGE_DEVICE_EXTENT_MAP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "codecs/base/positions.h"

namespace quire {

// The runs of a file: parts whose bytes are contiguous on the device as in the
// file. Bytes in no run have unknown positions: holes, data that the file
// system compresses or stores inside its own structures, and data written after
// the map was made. Immutable, hence thread-safe.
class ExtentMap {
 public:
  struct Run {
    FileOffset start;
    uint64_t size_bytes = 0;
    // Position of the run's first byte, in bytes from the beginning of the
    // device that contains the file system.
    uint64_t physical = 0;
  };

  struct Place {
    // Like Run::physical; nothing if unknown.
    std::optional<uint64_t> physical;
    // End in the file of the run, or of the part between runs.
    FileOffset end;
  };

  // A map of more pieces is not worth its memory: 4 MiB.
  static constexpr size_t kRunsMax = 1 << 18;

  // A map without known positions.
  ExtentMap() = default;

  // Merges neighbours that are contiguous on the device.
  // REQUIRES: by ascending start, none overlaps, none is empty, none ends past
  // 2^63.
  explicit ExtentMap(const std::vector<Run>& runs);

  // Reads the map of the open file from the file system (FS_IOC_FIEMAP; Linux,
  // Documentation/filesystems/fiemap.rst). Blocks on I/O. REQUIRES: the file
  // was synced; unsynced parts are in no run.
  // Errors: Unimplemented       the file system lacks this (tmpfs, overlays,
  //                             networks).
  //         ResourceExhausted   more than `runs_max` runs.
  //         Unavailable         an error of the operating system.
  static absl::StatusOr<ExtentMap> Read(int fd, size_t runs_max = kRunsMax);

  Place Find(FileOffset offset) const;

  bool empty() const { return pieces_.empty(); }

  // Parts of the file that are in a run.
  size_t run_count() const { return run_count_; }

 private:
  static constexpr uint64_t kUnknown = ~uint64_t{0};

  // A run, or the gap between two; extends to the next piece.
  struct Piece {
    uint64_t start = 0;
    uint64_t physical = kUnknown;
  };

  void Append(const Run& run);

  std::vector<Piece> pieces_;
  // End of the last run. Later bytes are unknown.
  uint64_t end_ = 0;
  size_t run_count_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_DEVICE_EXTENT_MAP_H_
