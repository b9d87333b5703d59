// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/pread_device.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

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
  const uint32_t thread_count = std::min(depth, kThreadsMax);
  try {
    for (uint32_t i = 0; i < thread_count; ++i) {
      device->threads_.emplace_back([d = device.get()] { d->Run(); });
    }
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot start ", thread_count, " threads to read with: ", error.what(),
        "; raise the limit on threads or lower the device depth"));
  }
  return device;
}

PreadDevice::~PreadDevice() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  work_.NotifyAll();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void PreadDevice::Submit(std::span<const DeviceRead> reads) {
  size_t wake = 0;
  {
    MutexLock lock(&mutex_);
    queue_.insert(queue_.end(), reads.begin(), reads.end());
    wake = std::min<size_t>(idle_threads_, reads.size());
  }
  for (size_t i = 0; i < wake; ++i) {
    work_.NotifyOne();
  }
}

void PreadDevice::Run() {
  pthread_setname_np(pthread_self(), "quire-pread");
  mutex_.Lock();
  while (true) {
    // A busy thread's `done` may submit more: while one is busy none leaves.
    while (queue_.empty() && !(stopping_ && busy_threads_ == 0)) {
      ++idle_threads_;
      work_.Wait(&mutex_);
      --idle_threads_;
    }
    if (queue_.empty()) {
      break;
    }
    const DeviceRead read = queue_.front();
    queue_.pop_front();
    ++busy_threads_;
    mutex_.Unlock();
    DeviceResult result = ReadAll(read);
    done_({&result, 1});
    mutex_.Lock();
    --busy_threads_;
    if (stopping_ && busy_threads_ == 0) {
      work_.NotifyAll();
    }
  }
  mutex_.Unlock();
}

}  // namespace quire
