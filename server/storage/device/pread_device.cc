// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/device/pread_device.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "codecs/base/status_macros.h"

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

}  // namespace

PreadDevice::PreadDevice(Done done) : done_(std::move(done)) {}

absl::StatusOr<std::unique_ptr<Device>> PreadDevice::Open(uint32_t depth,
                                                          Done done) {
  auto device = std::unique_ptr<PreadDevice>(new PreadDevice(std::move(done)));
  QUIRE_ASSIGN_OR_RETURN(device->threads_,
                         WorkerThreads<DeviceRead>::Start(
                             "quire-pread", std::min(depth, kThreadsMax),
                             [d = device.get()](const DeviceRead& read) {
                               DeviceResult result = ReadAll(read);
                               d->done_({&result, 1});
                             }));
  return device;
}

void PreadDevice::Submit(std::span<const DeviceRead> reads) {
  threads_->Add(reads.begin(), reads.end());
}

}  // namespace quire
