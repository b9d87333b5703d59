// SPDX-License-Identifier: GPL-3.0-or-later
#include "testing/storage/fault_plan.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <numeric>
#include <random>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace quire {
namespace {

uint64_t FromEnvironment(const char* name) {
  const char* text = std::getenv(name);
  uint64_t value = 0;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : 0;
}

}  // namespace

FaultPlan::FaultPlan(uint64_t seed, uint64_t block_count,
                     uint32_t block_size_bytes, uint64_t stride_bytes)
    : stride_bytes_(stride_bytes) {
  std::mt19937_64 random(seed);
  // From a good disk to one that is about to fail.
  const uint64_t one_in = uint64_t{4} << random() % 8;
  for (uint64_t i = 0; i < block_count; ++i) {
    BlockFault fault = BlockFault::kNone;
    if (random() % one_in == 0) {
      constexpr BlockFault kFaults[] = {BlockFault::kUnreadable,
                                        BlockFault::kWeak, BlockFault::kFlipped,
                                        BlockFault::kCorrupted};
      fault = kFaults[random() % 4];
    }
    faults_.push_back(fault);
    bad_bytes_.push_back(static_cast<uint32_t>(random() % block_size_bytes));
  }
  const uint64_t cut_off = random() % 4 == 0 ? block_count / 20 : 0;
  std::fill(faults_.end() - static_cast<ptrdiff_t>(cut_off), faults_.end(),
            BlockFault::kCutOff);
  const uint64_t end = OffsetOf(block_count - cut_off);
  // Often within the first missing block.
  file_size_bytes_ = cut_off > 0 ? end + random() % block_size_bytes : end;
}

bool FaultPlan::Allows(uint64_t block, absl::StatusCode code) const {
  switch (faults_[block]) {
    case BlockFault::kNone:
      return code == absl::StatusCode::kOk;
    case BlockFault::kUnreadable:
      return code == absl::StatusCode::kUnavailable;
    case BlockFault::kWeak:
      return code == absl::StatusCode::kOk ||
             code == absl::StatusCode::kUnavailable;
    case BlockFault::kCorrupted:
      return code == absl::StatusCode::kOk ||
             code == absl::StatusCode::kDataLoss;
    case BlockFault::kFlipped:
    case BlockFault::kCutOff:
      return code == absl::StatusCode::kDataLoss;
  }
  return false;
}

DeviceResult FaultPlan::Read(uint64_t offset, uint64_t size_bytes,
                             uint64_t draw) const {
  const uint64_t end = offset + size_bytes;
  for (uint64_t i = offset / stride_bytes_;
       i < faults_.size() && OffsetOf(i) < end; ++i) {
    const bool fails = faults_[i] == BlockFault::kUnreadable ||
                       (faults_[i] == BlockFault::kWeak && draw % 2 == 0);
    if (fails && BadByteOf(i) >= offset && BadByteOf(i) < end) {
      const uint64_t good_bytes = BadByteOf(i) - offset;
      return {.size_bytes = good_bytes,
              .status = absl::UnavailableError("device error: EIO")};
    }
  }
  if (end > file_size_bytes_) {
    return {.size_bytes = std::max(file_size_bytes_, offset) - offset,
            .status = absl::DataLossError("file ends early")};
  }
  return {.size_bytes = size_bytes, .status = {}};
}

void FaultPlan::Apply(const DeviceRead& read, uint64_t draw,
                      DeviceResult& result) const {
  const uint64_t offset = read.offset.value;
  const DeviceResult made = Read(offset, read.buffer.size(), draw);
  result.size_bytes = made.size_bytes;
  result.status = made.status;
  for (uint64_t i = offset / stride_bytes_;
       i < faults_.size() && OffsetOf(i) < offset + read.buffer.size(); ++i) {
    const bool flips = faults_[i] == BlockFault::kFlipped ||
                       (faults_[i] == BlockFault::kCorrupted && draw % 2 == 0);
    if (flips && BadByteOf(i) >= offset &&
        BadByteOf(i) - offset < read.buffer.size()) {
      read.buffer[BadByteOf(i) - offset] ^= 0x10;
    }
  }
  // Bytes that a device did not read are arbitrary.
  std::fill(read.buffer.begin() + static_cast<ptrdiff_t>(result.size_bytes),
            read.buffer.end(), uint8_t{0xDD});
}

std::vector<uint64_t> SimulationSeeds(uint64_t count) {
  if (const uint64_t seed = FromEnvironment("QUIRE_SIMULATION_SEED")) {
    return {seed};
  }
  if (const uint64_t more = FromEnvironment("QUIRE_SIMULATION_SEEDS")) {
    count = more;
  }
  std::vector<uint64_t> seeds(count);
  std::iota(seeds.begin(), seeds.end(), uint64_t{1});
  return seeds;
}

std::string HowToRepeat(uint64_t seed) {
  return absl::StrCat("seed ", seed,
                      "; to run it again: QUIRE_SIMULATION_SEED=", seed);
}

}  // namespace quire
