// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_STORAGE_DEVICE_IO_URING_DEVICE_H_
#define QUIRE_SERVER_STORAGE_DEVICE_IO_URING_DEVICE_H_

#include <liburing.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"

#include "codecs/base/mutex.h"
#include "server/storage/device/device.h"

namespace quire {

// Reads through one io_uring owned by one thread. The thread submits, waits and
// delivers, so the ring needs no lock. Other threads put their reads in an
// inbox and wake the thread through an eventfd that the ring reads. Urgent
// reads are submitted separately, with a real-time I/O priority of the thread
// if the system permits it. The kernel takes a read's priority from the
// submitting thread; an entry's own priority counts for O_DIRECT only. While
// the receiver is busy, the thread sleeps for the time of its patience, and
// results and new reads accumulate. Before Linux 6.1 each result wakes it
// nevertheless, within the kernel. At most `depth` reads are in the ring, half
// the capacity of its completion queue, so completions cannot overflow.
// Thread-safe.
class IoUringDevice : public Device {
 public:
  // Sets up the ring and makes one read, to check that the kernel and its
  // policies allow it.
  // Errors: FailedPrecondition  not allowed; names the step, the cause and a
  //                             remedy.
  static absl::StatusOr<std::unique_ptr<Device>> Open(uint32_t depth,
                                                      Done done);
  ~IoUringDevice() override;

  void Submit(std::span<const DeviceRead> reads) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  void SetPatience(Patience patience) override ABSL_LOCKS_EXCLUDED(mutex_);

  // Requires CAP_SYS_NICE or CAP_SYS_ADMIN.
  bool takes_priorities() const override { return takes_priorities_; }

  std::string name() const override { return "io_uring"; }

 private:
  // A read in the ring; its index is the completion's user data.
  struct Slot {
    DeviceRead read;
    size_t done_bytes = 0;
    uint32_t attempts = 0;
  };

  IoUringDevice(uint32_t depth, Done done);
  absl::Status Start();
  // Thread function: sets up the ring, reports the status, and serves the ring.
  void Run(std::promise<absl::Status> ready) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status SetUpRing();
  absl::Status ProbeRead();
  // Takes the inbox; returns false to end the thread. Sets `patience` to the
  // time that the thread may sleep; if it is 0, a new read wakes the thread.
  bool TakeInbox(std::chrono::microseconds& patience)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Submits the entries and waits until the patience ends, or, without
  // patience, for a completion.
  void Wait(std::chrono::microseconds patience) ABSL_LOCKS_EXCLUDED(mutex_);
  void StartBacklog();
  void StartReads(std::deque<DeviceRead>& reads);
  void ReapCompletions();
  void Complete(uint32_t slot_index, int result);
  void EnqueueSlot(uint32_t slot_index);
  void EnqueueWakeup();
  io_uring_sqe* NextEntry();

  const Done done_;
  const uint32_t depth_;
  const bool takes_priorities_;
  int wakeup_fd_ = -1;
  bool ring_ready_ = false;

  Mutex mutex_;
  std::vector<DeviceRead> inbox_ ABSL_GUARDED_BY(mutex_);
  // The thread waits in the kernel, or is about to, and must be woken.
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Patience patience_ ABSL_GUARDED_BY(mutex_);

  // Used by the thread alone once it runs.
  io_uring ring_;
  uint64_t wakeup_count_ = 0;
  bool wakeup_armed_ = false;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_slots_;
  std::deque<DeviceRead> backlog_;
  std::deque<DeviceRead> urgent_backlog_;
  std::vector<DeviceRead> taken_;
  std::vector<DeviceResult> results_;

  std::thread thread_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_DEVICE_IO_URING_DEVICE_H_
