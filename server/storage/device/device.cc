// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/device/device.h"

#include <string.h>  // NOLINT: strerrordesc_np is glibc's

#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/storage/device/io_uring_device.h"
#include "server/storage/device/pread_device.h"

namespace quire {

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
