// SPDX-License-Identifier: GPL-3.0-or-later
//
// A real device with the timing of a modelled drive.
#ifndef QUIRE_SERVER_STORAGE_MODEL_MODELLED_DEVICE_H_
#define QUIRE_SERVER_STORAGE_MODEL_MODELLED_DEVICE_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

#include "codecs/base/mutex.h"
#include "server/storage/device/device.h"
#include "server/storage/model/drive_model.h"

namespace quire {

// Reads through another device at once and delays each result until the
// modelled drive would have it. If the other device is slower than the model,
// results arrive when it has them.
//
// On the modelled drive files are contiguous, without gaps, in the order of
// their first read.
// Thread-safe.
class ModelledDevice final : public Device {
 public:
  // `open_inner` makes the device that reads.
  // Errors: those of `open_inner`; ResourceExhausted  cannot start a thread.
  static absl::StatusOr<std::unique_ptr<Device>> Open(
      std::unique_ptr<DriveModel> drive, std::string drive_name,
      const DeviceFactory& open_inner, Done done);
  ~ModelledDevice() override;

  void Submit(std::span<const DeviceRead> reads) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  bool takes_priorities() const override { return takes_priorities_; }

  // "model:" and the drive's name.
  std::string name() const override { return "model:" + drive_name_; }

 private:
  // A read that has not been delivered.
  struct Pending {
    uint64_t caller_id = 0;
    // Done in the modelled drive; done in the other device.
    bool drive_done = false;
    bool data_done = false;
    DeviceResult result = {};
  };

  // (st_dev, st_ino)
  using FileName = std::pair<dev_t, ino_t>;

  ModelledDevice(std::unique_ptr<DriveModel> drive, std::string drive_name,
                 Done done);

  DriveTime Now() const { return std::chrono::steady_clock::now() - start_; }

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Marks the reads that the drive has completed.
  void AdvanceDrive(DriveTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Ripen(uint64_t id, Pending& pending)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drive address of the file's beginning.
  uint64_t BaseOf(int fd) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnData(std::span<DeviceResult> results) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string drive_name_;
  const bool takes_priorities_;
  const Done done_;
  const std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();
  Mutex mutex_;
  CondVar changed_;
  std::unique_ptr<DriveModel> drive_ ABSL_PT_GUARDED_BY(mutex_);
  std::map<FileName, uint64_t> bases_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_base_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::flat_hash_map<uint64_t, Pending> pending_ ABSL_GUARDED_BY(mutex_);
  // Ready for delivery.
  std::vector<DeviceResult> ripe_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Device> inner_;
  std::thread thread_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_MODEL_MODELLED_DEVICE_H_
