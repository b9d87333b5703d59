// SPDX-License-Identifier: GPL-3.0-or-later
//
// Asynchronous positional reads of open files, the source of extents.
#ifndef QUIRE_SERVER_STORAGE_DEVICE_DEVICE_H_
#define QUIRE_SERVER_STORAGE_DEVICE_DEVICE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/base/positions.h"

namespace quire {

// Interface of the operating system for reads. kAuto uses io_uring if the
// kernel allows it and pread otherwise.
enum class DeviceEngine { kAuto, kIoUring, kPread };

// One read. The device fills all of `buffer`; buffer and file must stay valid
// until the read's result has been delivered.
struct DeviceRead {
  // Identifies the read in its result; chosen by the caller.
  uint64_t id = 0;
  int fd = -1;
  FileOffset offset;
  // Served before reads that are not urgent if takes_priorities().
  bool urgent = false;
  // Any address and size, unless `fd` is open with O_DIRECT. Then offset,
  // address and size are multiples of the file's alignment. Such a read may end
  // after the end of the file; it then gets the size up to there and some
  // error.
  MutableByteView buffer;
};

struct DeviceResult {
  uint64_t id = 0;
  // Bytes at the front of the buffer that equal the file, whatever the status:
  // blocks before the error can still be served.
  size_t size_bytes = 0;
  // Errors: DataLoss     the file ends before the read does.
  //         Unavailable  the operating system reports an error; named.
  absl::Status status;
  // The device has tried all it can: do not repeat a failed read.
  bool is_final = false;
};

// Thread-safe.
class Device {
 public:
  // Receives results on a thread of the device, several at a time if they
  // arrived together. May call Submit(). Must not block, since the device
  // waits.
  using Done = std::function<void(std::span<DeviceResult>)>;

  // Time until the caller needs new results; 0 if it waits for them.
  using Patience = std::function<std::chrono::microseconds()>;

  // Delivers the results of all reads in flight, including those that `done`
  // submits meanwhile, then joins the threads.
  // REQUIRES: no Submit() runs except from `done`; not called by `done`.
  virtual ~Device() = default;

  // Starts the reads, in this order if the device has one. Does not wait for
  // I/O. Each read gets exactly one result, after the call of Submit() but
  // perhaps before it returns. The device queues reads above its depth; the
  // caller bounds the number in flight.
  // REQUIRES: no buffer is empty.
  virtual void Submit(std::span<const DeviceRead> reads) = 0;

  // Lets the device hold back results and new reads for the time that
  // `patience` returns: one turn of its thread, one submission and one
  // interrupt then serve many reads. Called repeatedly on the device's thread;
  // must not block nor call the device.
  virtual void SetPatience(Patience /*patience*/) {}  // NOLINT(*-value-param)

  // Records that bytes of a file, read earlier, are damaged: they are read
  // again now. A device with a copy of them drops it. Must not block.
  virtual void Invalidate(int /*fd*/, FileOffset /*offset*/,
                          uint64_t /*size_bytes*/) {}

  // True if the drive itself serves urgent reads first.
  virtual bool takes_priorities() const { return false; }

  // "io_uring", "pread", or "model:" and the modelled drive's name.
  virtual std::string name() const = 0;
};

struct OpenedDevice {
  std::unique_ptr<Device> device;
  // Reason for not using io_uring; empty if it is used.
  std::string note;
};

// Makes a device that delivers to the given function. Stores use it for other
// devices than those below, such as a modelled or a faulty disk.
using DeviceFactory = std::function<absl::StatusOr<OpenedDevice>(Device::Done)>;

// Opens the engine, or for kAuto the first that works here: containers and
// hardened kernels often forbid io_uring. `depth`: reads in progress at once.
// Errors: FailedPrecondition  the engine does not work here; says why and what
//                             to do.
//         InvalidArgument     depth is 0 or over kDeviceDepthMax.
absl::StatusOr<OpenedDevice> OpenDevice(DeviceEngine engine, uint32_t depth,
                                        Device::Done done);

inline constexpr uint32_t kDeviceDepthMax = 4096;

// For engines: the text for an errno; the status of a read that failed with
// `error` (an errno), and of one that reached the end of the file.
absl::string_view ErrorText(int error);
absl::Status DeviceErrorStatus(const DeviceRead& read, int error);
absl::Status EndOfFileStatus(const DeviceRead& read, size_t size_bytes);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_DEVICE_DEVICE_H_
