// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_STORAGE_DEVICE_PREAD_DEVICE_H_
#define QUIRE_SERVER_STORAGE_DEVICE_PREAD_DEVICE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

#include "server/storage/base/worker_threads.h"
#include "server/storage/device/device.h"

namespace quire {

// Reads with pread(2) on a few threads; works on any kernel. A thread takes one
// read at a time, so results arrive one by one.
// Thread-safe.
class PreadDevice : public Device {
 public:
  // Upper bound on threads for any depth: more would only wait for each other.
  static constexpr uint32_t kThreadsMax = 32;

  // Starts min(depth, kThreadsMax) threads.
  // Errors: ResourceExhausted  the system cannot start more threads.
  static absl::StatusOr<std::unique_ptr<Device>> Open(uint32_t depth,
                                                      Done done);

  void Submit(std::span<const DeviceRead> reads) override;

  std::string name() const override { return "pread"; }

 private:
  explicit PreadDevice(Done done);

  const Done done_;
  std::unique_ptr<WorkerThreads<DeviceRead>> threads_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_DEVICE_PREAD_DEVICE_H_
