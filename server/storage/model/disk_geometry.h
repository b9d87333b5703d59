// SPDX-License-Identifier: GPL-3.0-or-later
//
// Positions of bytes on a hard disk, and times of its arm between them.
#ifndef QUIRE_SERVER_STORAGE_MODEL_DISK_GEOMETRY_H_
#define QUIRE_SERVER_STORAGE_MODEL_DISK_GEOMETRY_H_

#include <cstdint>
#include <vector>

namespace quire {

// Times in milliseconds. The defaults describe the drive on which the RLZ paper
// was measured ("Access Time Tradeoffs in Archive Compression", section 4: a WD
// Red of 5 TB, WD50EFRX). Speed of rotation, capacity and transfer rates are
// public. The rest is assumed (A) such that one read at a time gives the
// paper's 100 or so per second.
struct DiskGeometry {
  double turn_ms = 60'000.0 / 5'400;
  uint32_t zone_count = 24;
  uint32_t cylinder_count = 412'000;       // A
  uint32_t head_count = 8;                 // A
  double outer_track_size_bytes = 2.11e6;  // 170 MB/s with skew
  double inner_track_size_bytes = 0.93e6;  // 75 MB/s
  // Switch to another head, or to the next cylinder in a sequential read.
  // Tracks are skewed by as much, so that sequential reads lose no turn. A.
  double switch_ms = 1.3;
  // Seeks: to the next cylinder; settle + root * sqrt(cylinders) up to a share
  // of the stroke; linear from there to the full stroke. A, fitted to 9.3 ms on
  // average and 2.1 ms over 100 cylinders.
  double next_cylinder_ms = 1.0;
  double settle_ms = 1.9;
  double root_ms = 0.0198;
  double root_stroke_share = 0.2;
  double full_stroke_ms = 19.0;
};

// A position on the platters.
struct DiskPlace {
  uint32_t cylinder = 0;
  uint32_t head = 0;
  // Fraction of a turn, 0 to below 1, at which this position passes the head.
  double angle = 0;
  double track_size_bytes = 0;
  // Bytes from here to the end of the track.
  double left_size_bytes = 0;
};

// Immutable, hence thread-safe.
class DiskLayout {
 public:
  explicit DiskLayout(const DiskGeometry& geometry);

  const DiskGeometry& geometry() const { return geometry_; }

  uint64_t capacity_size_bytes() const { return capacity_size_bytes_; }

  // REQUIRES: address < capacity_size_bytes().
  DiskPlace Find(uint64_t address) const;

  // Time to move the arm and settle; 0 for the same track.
  double SeekMs(const DiskPlace& from, const DiskPlace& to) const;
  double SeekMs(uint32_t cylinders) const;

  // Time from the first byte to the end of the last, including changes of
  // track.
  double TransferMs(const DiskPlace& start, uint64_t size_bytes) const;

 private:
  struct Zone {
    uint64_t start = 0;
    uint64_t track_size_bytes = 0;
  };

  const DiskGeometry geometry_;
  uint32_t zone_cylinders_ = 0;
  uint64_t capacity_size_bytes_ = 0;
  double root_cylinders_ = 0;
  double linear_ms_ = 0;
  std::vector<Zone> zones_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_MODEL_DISK_GEOMETRY_H_
