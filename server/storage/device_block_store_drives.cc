// SPDX-License-Identifier: GPL-3.0-or-later
//
// Of DeviceBlockStore, what has to do with which drive a block is read from.
#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/storage/device_block_store.h"
#include "server/storage/elevator_scheduler.h"

namespace quire {
namespace {

// Less is not worth a timer; more would let a device stand still that the
// decoders could soon need.
constexpr std::chrono::microseconds kDevicePatienceMin{50};
constexpr std::chrono::microseconds kDevicePatienceMax{400};

ElevatorScheduler::Options SchedulerOptions(
    const BlockStoreOptions& options, DriveKind kind, bool uses_priorities,
    uint64_t (*read_memory_size_bytes)(uint64_t)) {
  ElevatorScheduler::Options scheduler;
  if (kind == DriveKind::kSolidState) {
    scheduler = ElevatorScheduler::Options::SolidState();
  } else if (uses_priorities) {
    scheduler = ElevatorScheduler::Options::WithPriorities();
  }
  scheduler.pending_requests_max = options.pending_fetches_max;
  scheduler.buffer_memory_size_bytes = read_memory_size_bytes;
  if (options.direct_io) {
    // Widened, the largest reads are still of a size that the pool keeps.
    scheduler.read_size_bytes_max -= kDirectMarginBytes;
  }
  return scheduler;
}

}  // namespace

absl::Status DeviceBlockStore::AddDrive(const DriveInfo& info) {
  {
    MutexLock lock(&mutex_);
    // Whatever the files lie on, a modelled drive is the only one.
    const bool is_modelled = !options_.device_model.empty();
    if (FindDrive(info.name) != nullptr || (is_modelled && !drives_.empty())) {
      return absl::OkStatus();
    }
  }
  auto drive = std::make_unique<Drive>();
  drive->info = info;
  drive->stats.name = info.name;
  QUIRE_ASSIGN_OR_RETURN(
      OpenedDevice opened,
      open_device_([this, d = drive.get()](std::span<DeviceResult> results) {
        OnReadsDone(*d, results);
      }));
  drive->device = std::move(opened.device);
  drive->note = std::move(opened.note);
  drive->device->SetPatience([this] { return DevicePatience(); });
  if (info.has_priorities && info.kind == DriveKind::kRotational) {
    drive->uses_priorities = drive->device->takes_priorities();
    if (!drive->uses_priorities) {
      absl::StrAppend(&drive->note, drive->note.empty() ? "" : "; ",
                      "the drive's priorities need io_uring and CAP_SYS_NICE");
    }
  }
  drive->scheduler = std::make_unique<ElevatorScheduler>(SchedulerOptions(
      options_, info.kind, drive->uses_priorities, read_memory_size_bytes_));
  MutexLock lock(&mutex_);
  // Another thread may have been quicker; then this one is closed again.
  if (FindDrive(info.name) == nullptr) {
    drives_.push_back(std::move(drive));
  }
  return absl::OkStatus();
}

std::chrono::microseconds DeviceBlockStore::DevicePatience() const {
  const std::chrono::nanoseconds half = decode_pool_->Backlog() / 2;
  return half < kDevicePatienceMin
             ? std::chrono::microseconds(0)
             : std::chrono::duration_cast<std::chrono::microseconds>(
                   std::min<std::chrono::nanoseconds>(half,
                                                      kDevicePatienceMax));
}

DeviceBlockStore::Drive* DeviceBlockStore::FindDrive(
    const std::string& name) const {
  for (const std::unique_ptr<Drive>& drive : drives_) {
    if (drive->info.name == name) {
      return drive.get();
    }
  }
  return nullptr;
}

std::string DeviceBlockStore::engine_name() const {
  MutexLock lock(&mutex_);
  return drives_.front()->device->name();
}

std::vector<DriveDescription> DeviceBlockStore::Drives() const {
  MutexLock lock(&mutex_);
  std::vector<DriveDescription> descriptions;
  descriptions.reserve(drives_.size());
  for (const std::unique_ptr<Drive>& drive : drives_) {
    descriptions.push_back({.drive = drive->info,
                            .engine = drive->device->name(),
                            .uses_priorities = drive->uses_priorities,
                            .note = drive->note});
  }
  return descriptions;
}

}  // namespace quire
