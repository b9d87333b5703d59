// SPDX-License-Identifier: GPL-3.0-or-later
//
// Bad blocks of a generated file and their faults, for simulations.
#ifndef QUIRE_TESTING_STORAGE_FAULT_PLAN_H_
#define QUIRE_TESTING_STORAGE_FAULT_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "server/storage/device/device.h"

namespace quire {

enum class BlockFault {
  kNone,
  // A sector that returns EIO: always, or at every other attempt.
  kUnreadable,
  kWeak,
  // A flipped bit: always, or at every other attempt.
  kFlipped,
  kCorrupted,
  // The file ends before it.
  kCutOff,
};

// Blocks of one size at regular intervals, some of them bad, chosen by a seed.
// A fault has a position: it is known which fetches may fail.
// Thread-compatible.
class FaultPlan {
 public:
  // REQUIRES: block_size_bytes > 0; block_count > 0.
  FaultPlan(uint64_t seed, uint64_t block_count, uint32_t block_size_bytes,
            uint64_t stride_bytes);

  BlockFault FaultOf(uint64_t block) const { return faults_[block]; }

  uint64_t OffsetOf(uint64_t block) const { return block * stride_bytes_; }

  // True if a fetch of the block may end with `code`.
  bool Allows(uint64_t block, absl::StatusCode code) const;

  // Result of a read by the device: bytes before the first fault, and its
  // error. Odd `draw` avoids weak sectors and corrupted bits.
  DeviceResult Read(uint64_t offset, uint64_t size_bytes, uint64_t draw) const;

  // For a read served by the file: puts the faults into its bytes and its
  // result.
  void Apply(const DeviceRead& read, uint64_t draw, DeviceResult& result) const;

 private:
  // Offset in the file of the block's bad sector or bit.
  uint64_t BadByteOf(uint64_t block) const {
    return OffsetOf(block) + bad_bytes_[block];
  }

  const uint64_t stride_bytes_;
  uint64_t file_size_bytes_ = 0;
  std::vector<BlockFault> faults_;
  std::vector<uint32_t> bad_bytes_;
};

// Seeds 1 to `count`, or to QUIRE_SIMULATION_SEEDS if set in the environment;
// only QUIRE_SIMULATION_SEED if that is set.
std::vector<uint64_t> SimulationSeeds(uint64_t count);

// Text for failures: how to run the seed again.
std::string HowToRepeat(uint64_t seed);

}  // namespace quire

#endif  // QUIRE_TESTING_STORAGE_FAULT_PLAN_H_
