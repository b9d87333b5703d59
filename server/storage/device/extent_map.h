// SPDX-License-Identifier: GPL-3.0-or-later
//
// Where on its device a file lies.
#ifndef QUIRE_SERVER_STORAGE_DEVICE_EXTENT_MAP_H_
#define QUIRE_SERVER_STORAGE_DEVICE_EXTENT_MAP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "codecs/base/positions.h"

namespace quire {

// The runs of a file: parts whose bytes follow each other on the device as they
// do in the file. Of what is not in any run nothing is known: holes, data that
// the file system keeps compressed or inside of its own structures, and
// whatever was written after the map was made.
// Immutable, hence thread-safe.
class ExtentMap {
 public:
  struct Run {
    FileOffset start;
    uint64_t size_bytes = 0;
    // Of the run's first byte, in bytes from the beginning of the device that
    // the file system lies on.
    uint64_t physical = 0;
  };

  struct Place {
    // As Run::physical; nothing if it is not known.
    std::optional<uint64_t> physical;
    // Where in the file the run, or the part that is in none, ends.
    FileOffset end;
  };

  // A file in more pieces than this is not worth its map: 4 MiB.
  static constexpr size_t kRunsMax = 1 << 18;

  // Knows nothing of any place.
  ExtentMap() = default;

  // Neighbours that go on where the one before ends become one run.
  // REQUIRES: by ascending start, none overlaps, none is empty, none ends past
  // 2^63.
  explicit ExtentMap(const std::vector<Run>& runs);

  // What the file system says of the open file (FS_IOC_FIEMAP; Linux,
  // Documentation/filesystems/fiemap.rst). Blocks on I/O. The file must have
  // been synced, or parts of it have no place yet and are in no run.
  // Errors: Unimplemented       this file system does not say (tmpfs, overlays,
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

  // A run, or what lies between two; reaches to the next one.
  struct Piece {
    uint64_t start = 0;
    uint64_t physical = kUnknown;
  };

  void Append(const Run& run);

  std::vector<Piece> pieces_;
  // Of the last run. What follows is unknown.
  uint64_t end_ = 0;
  size_t run_count_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_DEVICE_EXTENT_MAP_H_
