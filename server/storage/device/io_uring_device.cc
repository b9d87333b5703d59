// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/device/io_uring_device.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// User data for the read of the eventfd; all others are slot indexes. liburing
// reserves the highest number.
constexpr uint64_t kWakeupUserData = ~uint64_t{1};
// A read that the kernel rejects temporarily this often in a row fails.
constexpr uint32_t kAttemptsMax = 64;
// One operation's length is 32 bits and the kernel caps it below 2 GiB anyway.
constexpr size_t kOperationSizeBytesMax = size_t{1} << 30;

// In order of preference. The thread collects completions when it asks, so that
// it can sleep through several (Linux 6.1); or at least is not interrupted
// (5.19).
constexpr unsigned kSetupFlags[] = {
    IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
    IORING_SETUP_COOP_TASKRUN, 0};

// Gives the calling thread a real-time I/O priority while it exists, if that is
// permitted. The constants are those of ioprio_set(2): glibc has neither them
// nor the functions, and <linux/ioprio.h> of Linux 6.1.192 is no C++.
class UrgentScope {
 public:
  UrgentScope()
      : before_(static_cast<int>(syscall(SYS_ioprio_get, kWhoProcess, 0))),
        is_urgent_(before_ >= 0 && Set(kRealTimeMiddle)) {}

  ~UrgentScope() {
    if (is_urgent_) {
      // Before Linux 6.0, a thread without a priority reports class 0 with a
      // level that the kernel does not accept back.
      Set(before_ >> kClassShift == 0 ? 0 : before_);
    }
  }

  UrgentScope(const UrgentScope&) = delete;
  UrgentScope& operator=(const UrgentScope&) = delete;

  bool is_urgent() const { return is_urgent_; }

 private:
  static constexpr int kWhoProcess = 1;
  static constexpr int kClassShift = 13;
  // Class 1 of those in the highest three bits, level 4 of 0 to 7.
  static constexpr int kRealTimeMiddle = 1 << kClassShift | 4;

  static bool Set(int priority) {
    return syscall(SYS_ioprio_set, kWhoProcess, 0, priority) == 0;
  }

  const int before_;
  const bool is_urgent_;
};

absl::Status Unusable(absl::string_view step, int error) {
  absl::string_view reason = "";
  switch (error) {
    case ENOSYS:
      reason = "this kernel has no io_uring";
      break;
    case EPERM:
    case EACCES:
      reason =
          "forbidden by sysctl kernel.io_uring_disabled or by a seccomp "
          "profile (containers)";
      break;
    case ENOMEM:
      reason = "out of memory, or the limit on locked memory is too low";
      break;
    case EMFILE:
    case ENFILE:
      reason = "the limit on open files is reached";
      break;
    default:
      reason = "this kernel's io_uring is too old";
      break;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "io_uring does not work here: ", step, ": ", ErrorText(error), ": ",
      reason, "; allow it or use the engine pread"));
}

}  // namespace

IoUringDevice::IoUringDevice(uint32_t depth, Done done)
    : done_(std::move(done)),
      depth_(depth),
      takes_priorities_(UrgentScope().is_urgent()),
      slots_(depth) {
  free_slots_.reserve(depth);
  for (uint32_t i = depth; i-- > 0;) {
    free_slots_.push_back(i);
  }
  results_.reserve(depth);
}

absl::StatusOr<std::unique_ptr<Device>> IoUringDevice::Open(uint32_t depth,
                                                            Done done) {
  auto device =
      std::unique_ptr<IoUringDevice>(new IoUringDevice(depth, std::move(done)));
  QUIRE_RETURN_IF_ERROR(device->Start());
  return device;
}

absl::Status IoUringDevice::Start() {
  wakeup_fd_ = eventfd(0, EFD_CLOEXEC);
  if (wakeup_fd_ < 0) {
    return Unusable("eventfd", errno);
  }
  std::promise<absl::Status> ready;
  std::future<absl::Status> status = ready.get_future();
  try {
    thread_ = std::thread([this, &ready] { Run(std::move(ready)); });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start a thread for io_uring: ", error.what()));
  }
  return status.get();
}

absl::Status IoUringDevice::SetUpRing() {
  int result = -EINVAL;
  for (const unsigned flags : kSetupFlags) {
    // One more entry, for the read of the eventfd.
    result = io_uring_queue_init(depth_ + 1, &ring_, flags);
    if (result != -EINVAL) {
      break;
    }
  }
  if (result < 0) {
    return Unusable("io_uring_setup", -result);
  }
  ring_ready_ = true;
  return ProbeRead();
}

absl::Status IoUringDevice::ProbeRead() {
  // Gives the ring a read that completes at once.
  if (eventfd_write(wakeup_fd_, 1) != 0) {
    return Unusable("eventfd_write", errno);
  }
  EnqueueWakeup();
  const int submitted = io_uring_submit_and_wait(&ring_, 1);
  if (submitted < 0) {
    return Unusable("io_uring_enter", -submitted);
  }
  io_uring_cqe* completion = nullptr;
  const int peeked = io_uring_peek_cqe(&ring_, &completion);
  if (peeked != 0) {
    return Unusable("waiting for a first read", -peeked);
  }
  const int result = completion->res;
  io_uring_cqe_seen(&ring_, completion);
  wakeup_armed_ = false;
  if (result != static_cast<int>(sizeof(wakeup_count_))) {
    return Unusable("a first read", result < 0 ? -result : EINVAL);
  }
  return absl::OkStatus();
}

IoUringDevice::~IoUringDevice() {
  if (thread_.joinable()) {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
    }
    eventfd_write(wakeup_fd_, 1);
    thread_.join();
  }
  if (ring_ready_) {
    io_uring_queue_exit(&ring_);
  }
  if (wakeup_fd_ >= 0) {
    close(wakeup_fd_);
  }
}

void IoUringDevice::Submit(std::span<const DeviceRead> reads) {
  bool wake = false;
  {
    MutexLock lock(&mutex_);
    inbox_.insert(inbox_.end(), reads.begin(), reads.end());
    wake = std::exchange(waiting_, false);
  }
  if (wake) {
    eventfd_write(wakeup_fd_, 1);
  }
}

void IoUringDevice::SetPatience(Patience patience) {
  MutexLock lock(&mutex_);
  patience_ = std::move(patience);
}

bool IoUringDevice::TakeInbox(std::chrono::microseconds& patience) {
  const bool quiet = backlog_.empty() && urgent_backlog_.empty() &&
                     free_slots_.size() == depth_;
  // Before Linux 5.11 a timed wait uses an entry of the ring.
  const bool can_be_patient = (ring_.features & IORING_FEAT_EXT_ARG) != 0;
  {
    MutexLock lock(&mutex_);
    if (stopping_ && quiet && inbox_.empty()) {
      return false;
    }
    patience = can_be_patient && patience_ ? patience_()
                                           : std::chrono::microseconds(0);
    taken_.swap(inbox_);
    waiting_ = patience.count() == 0;
  }
  for (const DeviceRead& read : taken_) {
    (read.urgent && takes_priorities_ ? urgent_backlog_ : backlog_)
        .push_back(read);
  }
  taken_.clear();
  return true;
}

void IoUringDevice::Wait(std::chrono::microseconds patience) {
  // An error (EINTR, or EAGAIN and EBUSY without kernel memory) leaves the
  // entries unchanged; the next turn submits them.
  if (patience.count() > 0) {
    __kernel_timespec end = {.tv_sec = patience.count() / 1'000'000,
                             .tv_nsec = patience.count() % 1'000'000 * 1000};
    io_uring_cqe* completion = nullptr;
    // More than possible: only the timeout ends the wait.
    io_uring_submit_and_wait_timeout(&ring_, &completion, depth_ + 2, &end,
                                     nullptr);
  } else {
    io_uring_submit_and_wait(&ring_, 1);
  }
  MutexLock lock(&mutex_);
  waiting_ = false;
}

void IoUringDevice::Run(std::promise<absl::Status> ready) {
  pthread_setname_np(pthread_self(), "quire-io_uring");
  const absl::Status status = SetUpRing();
  ready.set_value(status);
  if (!status.ok()) {
    return;
  }
  std::chrono::microseconds patience{0};
  while (TakeInbox(patience)) {
    StartBacklog();
    if (!wakeup_armed_) {
      EnqueueWakeup();
    }
    Wait(patience);
    ReapCompletions();
  }
  // The kernel must not keep a pointer to wakeup_count_.
  while (wakeup_armed_) {
    eventfd_write(wakeup_fd_, 1);
    io_uring_submit_and_wait(&ring_, 1);
    ReapCompletions();
  }
}

void IoUringDevice::StartBacklog() {
  if (!urgent_backlog_.empty() && !free_slots_.empty()) {
    StartReads(urgent_backlog_);
    const UrgentScope urgent;
    io_uring_submit(&ring_);
  }
  StartReads(backlog_);
}

void IoUringDevice::StartReads(std::deque<DeviceRead>& reads) {
  while (!reads.empty() && !free_slots_.empty()) {
    const uint32_t slot_index = free_slots_.back();
    free_slots_.pop_back();
    slots_[slot_index] = {.read = reads.front()};
    reads.pop_front();
    EnqueueSlot(slot_index);
  }
}

void IoUringDevice::ReapCompletions() {
  results_.clear();
  io_uring_cqe* completion = nullptr;
  while (io_uring_peek_cqe(&ring_, &completion) == 0) {
    const uint64_t user_data = completion->user_data;
    const int result = completion->res;
    io_uring_cqe_seen(&ring_, completion);
    if (user_data == kWakeupUserData) {
      wakeup_armed_ = false;
    } else {
      Complete(static_cast<uint32_t>(user_data), result);
    }
  }
  if (!results_.empty()) {
    done_(results_);
  }
}

void IoUringDevice::Complete(uint32_t slot_index, int result) {
  Slot& slot = slots_[slot_index];
  absl::Status status;
  if (result > 0) {
    slot.done_bytes += static_cast<size_t>(result);
    slot.attempts = 0;
    if (slot.done_bytes < slot.read.buffer.size()) {
      EnqueueSlot(slot_index);
      return;
    }
  } else if (result == 0) {
    status = EndOfFileStatus(slot.read, slot.done_bytes);
  } else if ((result == -EINTR || result == -EAGAIN) &&
             ++slot.attempts < kAttemptsMax) {
    EnqueueSlot(slot_index);
    return;
  } else {
    status = DeviceErrorStatus(slot.read, -result);
  }
  results_.push_back({.id = slot.read.id,
                      .size_bytes = slot.done_bytes,
                      .status = std::move(status)});
  free_slots_.push_back(slot_index);
}

void IoUringDevice::EnqueueSlot(uint32_t slot_index) {
  const Slot& slot = slots_[slot_index];
  io_uring_sqe* entry = NextEntry();
  io_uring_prep_read(
      entry, slot.read.fd, slot.read.buffer.data() + slot.done_bytes,
      static_cast<unsigned>(std::min(slot.read.buffer.size() - slot.done_bytes,
                                     kOperationSizeBytesMax)),
      slot.read.offset.value + slot.done_bytes);
  io_uring_sqe_set_data64(entry, slot_index);
}

void IoUringDevice::EnqueueWakeup() {
  io_uring_sqe* entry = NextEntry();
  io_uring_prep_read(entry, wakeup_fd_, &wakeup_count_, sizeof(wakeup_count_),
                     0);
  io_uring_sqe_set_data64(entry, kWakeupUserData);
  wakeup_armed_ = true;
}

io_uring_sqe* IoUringDevice::NextEntry() {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  // There is one entry per slot and one more, and none holds two.
  QUIRE_CHECK(entry != nullptr,
              "the ring has as many entries as slots and one more");
  return entry;
}

}  // namespace quire
