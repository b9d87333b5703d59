// SPDX-License-Identifier: GPL-3.0-or-later
//
// A solid-state drive in virtual time: cells read in parallel, one bus to the
// host.
#ifndef QUIRE_SERVER_STORAGE_MODEL_SOLID_STATE_MODEL_H_
#define QUIRE_SERVER_STORAGE_MODEL_SOLID_STATE_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "server/storage/model/drive_model.h"

namespace quire {

// The defaults describe the drive on which the RLZ paper was measured ("Access
// Time Tradeoffs in Archive Compression", section 4: Samsung 850 EVO, 500 GB):
// 0.25 ms for a read; Table 1 has 0.12.
struct SolidStateOptions {
  uint64_t capacity_size_bytes = 500'000'000'000;
  double latency_ms = 0.25;
  // Rate of the bus: 540 MB/s for this drive's SATA link; Table 1 has 1000
  // MiB/s.
  double megabytes_per_second = 540;
  // Parallel reads; 24 give the 98,000 per second of its data sheet.
  uint32_t channel_count = 24;
};

class SolidStateModel final : public DriveModel {
 public:
  explicit SolidStateModel(const SolidStateOptions& options);

  void Submit(DriveTime now, const DriveCommand& command) override;
  std::optional<DriveTime> NextEnd() const override;
  std::vector<uint64_t> Advance(DriveTime now) override;

  size_t size() const override { return ends_.size(); }

  uint64_t capacity_size_bytes() const override {
    return options_.capacity_size_bytes;
  }

  bool rotational() const override { return false; }

 private:
  struct End {
    DriveTime at{0};
    uint64_t id = 0;
  };

  const SolidStateOptions options_;
  // Times at which the channels and the bus become free.
  std::vector<DriveTime> channels_;
  DriveTime bus_free_{0};
  // In order of time, as the bus carries one answer after another.
  std::deque<End> ends_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_MODEL_SOLID_STATE_MODEL_H_
