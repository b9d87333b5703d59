// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_STORAGE_PREAD_DEVICE_H_
#define QUIRE_SERVER_STORAGE_PREAD_DEVICE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"

#include "codecs/base/mutex.h"
#include "server/storage/device.h"

namespace quire {

// Reads with pread(2) on a few threads; works everywhere. A thread takes reads
// one by one, so results come one by one.
// Thread-safe.
class PreadDevice : public Device {
 public:
  // At most this many threads, however deep the device: beyond it they only
  // wait for each other.
  static constexpr uint32_t kThreadsMax = 32;

  // Starts min(depth, kThreadsMax) threads.
  // Errors: ResourceExhausted  the system gives no more threads.
  static absl::StatusOr<std::unique_ptr<Device>> Open(uint32_t depth,
                                                      Done done);
  ~PreadDevice() override;

  void Submit(std::span<const DeviceRead> reads) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  std::string name() const override { return "pread"; }

 private:
  explicit PreadDevice(Done done);
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);

  const Done done_;
  Mutex mutex_;
  CondVar work_;
  std::deque<DeviceRead> queue_ ABSL_GUARDED_BY(mutex_);
  uint32_t busy_threads_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t idle_threads_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Written before and joined after all else.
  std::vector<std::thread> threads_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_PREAD_DEVICE_H_
