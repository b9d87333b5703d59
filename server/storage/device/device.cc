// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/device/device.h"

#include <string.h>  // NOLINT: strerrordesc_np is glibc's
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/storage/base/worker_threads.h"
#include "server/storage/device/io_uring_device.h"

namespace quire {
namespace {

DeviceResult ReadAll(const DeviceRead& read) {
  DeviceResult result{.id = read.id, .size_bytes = 0, .status = {}};
  while (result.size_bytes < read.buffer.size()) {
    const ssize_t got =
        pread(read.fd, read.buffer.data() + result.size_bytes,
              read.buffer.size() - result.size_bytes,
              static_cast<off_t>(read.offset.value + result.size_bytes));
    if (got > 0) {
      result.size_bytes += static_cast<size_t>(got);
    } else if (got == 0) {
      result.status = EndOfFileStatus(read, result.size_bytes);
      break;
    } else if (errno != EINTR) {
      result.status = DeviceErrorStatus(read, errno);
      break;
    }
  }
  return result;
}

// Reads with pread(2) on a few threads; works on any kernel. A thread takes one
// read at a time, so results arrive one by one.
// Thread-safe.
class PreadDevice final : public Device {
 public:
  // Starts min(depth, kThreadsMax) threads.
  // Errors: ResourceExhausted  the system cannot start more threads.
  static absl::StatusOr<std::unique_ptr<Device>> Open(uint32_t depth,
                                                      Done done) {
    auto device =
        std::unique_ptr<PreadDevice>(new PreadDevice(std::move(done)));
    QUIRE_ASSIGN_OR_RETURN(device->threads_,
                           WorkerThreads<DeviceRead>::Start(
                               "quire-pread", std::min(depth, kThreadsMax),
                               [d = device.get()](const DeviceRead& read) {
                                 DeviceResult result = ReadAll(read);
                                 d->done_({&result, 1});
                               }));
    return device;
  }

  void Submit(std::span<const DeviceRead> reads) override {
    threads_->Add(reads.begin(), reads.end());
  }

  std::string name() const override { return "pread"; }

 private:
  // Upper bound on threads for any depth: more would only wait for each other.
  static constexpr uint32_t kThreadsMax = 32;

  explicit PreadDevice(Done done) : done_(std::move(done)) {}

  const Done done_;
  std::unique_ptr<WorkerThreads<DeviceRead>> threads_;
};

}  // namespace

absl::StatusOr<OpenedDevice> OpenDevice(DeviceEngine engine, uint32_t depth,
                                        Device::Done done) {
  if (depth == 0 || depth > kDeviceDepthMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "device depth is ", depth, "; it must be 1 to ", kDeviceDepthMax));
  }
  OpenedDevice opened;
  if (engine != DeviceEngine::kPread) {
    auto device = IoUringDevice::Open(depth, done);
    if (device.ok()) {
      opened.device = std::move(device).value();
      return opened;
    }
    if (engine == DeviceEngine::kIoUring) {
      return device.status();
    }
    opened.note = std::string(device.status().message());
  }
  QUIRE_ASSIGN_OR_RETURN(opened.device,
                         PreadDevice::Open(depth, std::move(done)));
  return opened;
}

// strerror() shares its buffer between threads.
absl::string_view ErrorText(int error) {
  const char* text = strerrordesc_np(error);
  return text != nullptr ? text : "unknown error";
}

// No path: these messages reach clients. The caller knows the file.
absl::Status DeviceErrorStatus(const DeviceRead& read, int error) {
  return absl::UnavailableError(absl::StrCat(
      "device error: reading ", read.buffer.size(), " bytes at offset ",
      read.offset.value, ": ", ErrorText(error)));
}

absl::Status EndOfFileStatus(const DeviceRead& read, size_t size_bytes) {
  return absl::DataLossError(absl::StrCat(
      "file ends early: reading ", read.buffer.size(), " bytes at offset ",
      read.offset.value, " found ", size_bytes));
}

}  // namespace quire
