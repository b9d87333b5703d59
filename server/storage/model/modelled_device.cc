// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/model/modelled_device.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"

namespace quire {

ModelledDevice::ModelledDevice(std::unique_ptr<DriveModel> drive,
                               std::string drive_name, Done done)
    : drive_name_(std::move(drive_name)),
      takes_priorities_(drive->has_priorities()),
      done_(std::move(done)),
      drive_(std::move(drive)) {}

absl::StatusOr<std::unique_ptr<Device>> ModelledDevice::Open(
    std::unique_ptr<DriveModel> drive, std::string drive_name,
    const DeviceFactory& open_inner, Done done) {
  auto device = std::unique_ptr<ModelledDevice>(new ModelledDevice(
      std::move(drive), std::move(drive_name), std::move(done)));
  QUIRE_ASSIGN_OR_RETURN(
      OpenedDevice inner,
      open_inner([d = device.get()](std::span<DeviceResult> results) {
        d->OnData(results);
      }));
  device->inner_ = std::move(inner.device);
  try {
    device->thread_ = std::thread([d = device.get()] { d->Run(); });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot start a thread for the modelled drive: ", error.what()));
  }
  return device;
}

ModelledDevice::~ModelledDevice() {
  if (thread_.joinable()) {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }
  inner_.reset();
}

void ModelledDevice::Submit(std::span<const DeviceRead> reads) {
  std::vector<DeviceRead> inner_reads(reads.begin(), reads.end());
  {
    MutexLock lock(&mutex_);
    const DriveTime now = Now();
    AdvanceDrive(now);
    for (DeviceRead& read : inner_reads) {
      const uint64_t id = next_id_++;
      pending_.emplace(id, Pending{.caller_id = read.id});
      read.id = id;
      drive_->Submit(now, {.id = id,
                           .address = BaseOf(read.fd) + read.offset.value,
                           .size_bytes = static_cast<uint32_t>(std::min<size_t>(
                               read.buffer.size(), UINT32_MAX)),
                           .urgent = read.urgent});
    }
    // The drive's next end may now be earlier.
    changed_.NotifyAll();
  }
  inner_->Submit(inner_reads);
}

uint64_t ModelledDevice::BaseOf(int fd) {
  struct stat status {};

  if (fstat(fd, &status) != 0) {
    // The other device reports the error.
    return 0;
  }
  const auto [it, added] =
      bases_.try_emplace({status.st_dev, status.st_ino}, next_base_);
  if (added) {
    next_base_ += static_cast<uint64_t>(std::max<off_t>(status.st_size, 0));
  }
  return it->second;
}

void ModelledDevice::OnData(std::span<DeviceResult> results) {
  MutexLock lock(&mutex_);
  for (DeviceResult& result : results) {
    const auto it = pending_.find(result.id);
    Pending& pending = it->second;
    pending.result = std::move(result);
    pending.data_done = true;
    Ripen(it->first, pending);
  }
}

void ModelledDevice::Ripen(uint64_t id, Pending& pending) {
  if (!pending.drive_done || !pending.data_done) {
    return;
  }
  pending.result.id = pending.caller_id;
  ripe_.push_back(std::move(pending.result));
  pending_.erase(id);
  changed_.NotifyAll();
}

void ModelledDevice::AdvanceDrive(DriveTime now) {
  for (const uint64_t id : drive_->Advance(now)) {
    Pending& pending = pending_.find(id)->second;
    pending.drive_done = true;
    Ripen(id, pending);
  }
}

void ModelledDevice::Run() {
  while (true) {
    std::vector<DeviceResult> results;
    {
      MutexLock lock(&mutex_);
      AdvanceDrive(Now());
      while (ripe_.empty()) {
        if (stopping_ && pending_.empty()) {
          return;
        }
        const std::optional<DriveTime> next = drive_->NextEnd();
        if (!next.has_value()) {
          changed_.Wait(&mutex_);
        } else if (*next > Now()) {
          changed_.WaitFor(&mutex_, *next - Now());
        }
        AdvanceDrive(Now());
      }
      results.swap(ripe_);
    }
    done_(results);
  }
}

}  // namespace quire
