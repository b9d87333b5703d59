// SPDX-License-Identifier: GPL-3.0-or-later
//
// Which blocks of a made-up file are bad, and in what way; for the simulations
// of faults.
#ifndef QUIRE_SERVER_STORAGE_SIMULATION_FAULT_PLAN_H_
#define QUIRE_SERVER_STORAGE_SIMULATION_FAULT_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "server/storage/device/device.h"

namespace quire {

enum class BlockFault {
  kNone,
  // A sector that gives EIO: always, or at every other try.
  kUnreadable,
  kWeak,
  // A bit that is not as it was written: always, or at every other try.
  kFlipped,
  kCorrupted,
  // The file ends before it.
  kCutOff,
};

// Blocks of one size at regular intervals, a part of them bad as a seed says.
// A fault belongs to a place, so that it is known which fetches it may fail.
// Thread-compatible.
class FaultPlan {
 public:
  // REQUIRES: block_size_bytes > 0; block_count > 0.
  FaultPlan(uint64_t seed, uint64_t block_count, uint32_t block_size_bytes,
            uint64_t stride_bytes);

  BlockFault FaultOf(uint64_t block) const { return faults_[block]; }

  uint64_t OffsetOf(uint64_t block) const { return block * stride_bytes_; }

  // Whether a fetch of the block may end so.
  bool Allows(uint64_t block, absl::StatusCode code) const;

  // What a device makes of a read: how many bytes it has got before the first
  // fault, and its error. Odd `draw` spares it weak sectors and corrupted bits.
  DeviceResult Read(uint64_t offset, uint64_t size_bytes, uint64_t draw) const;

  // For a read that the file itself has served: puts the faults into its bytes
  // and its result.
  void Apply(const DeviceRead& read, uint64_t draw, DeviceResult& result) const;

 private:
  // Where in the file the block's bad sector or bit is.
  uint64_t BadByteOf(uint64_t block) const {
    return OffsetOf(block) + bad_bytes_[block];
  }

  const uint64_t stride_bytes_;
  uint64_t file_size_bytes_ = 0;
  std::vector<BlockFault> faults_;
  std::vector<uint32_t> bad_bytes_;
};

// Seeds 1 to `count`, or to QUIRE_SIMULATION_SEEDS if that is set in the
// environment; QUIRE_SIMULATION_SEED alone if that is.
std::vector<uint64_t> SimulationSeeds(uint64_t count);

// For the message of a failure: how to run the seed again.
std::string HowToRepeat(uint64_t seed);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_SIMULATION_FAULT_PLAN_H_
