// SPDX-License-Identifier: GPL-3.0-or-later
//
// What extents are read from: asynchronous positional reads of open files.
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
#include "server/storage/device/device_engine.h"

namespace quire {

// One read. The device fills `buffer`, whose size says how much to read; buffer
// and file stay valid until the read's result has been delivered.
struct DeviceRead {
  // Names the read in its result; chosen by the caller.
  uint64_t id = 0;
  int fd = -1;
  FileOffset offset;
  // Before those that are not, if takes_priorities().
  bool urgent = false;
  // Of any address and size, unless `fd` is open with O_DIRECT: then offset,
  // address and size are multiples of what the file asks for, and such a read
  // may end behind the file's end, with a size up to there and some error.
  MutableByteView buffer;
};

struct DeviceResult {
  uint64_t id = 0;
  // The first so many bytes of the buffer are as in the file, whatever the
  // status says: blocks that lie before the fault can still be served.
  size_t size_bytes = 0;
  // Errors: DataLoss     the file ends before the read does.
  //         Unavailable  the operating system reports an error; named.
  absl::Status status;
};

// Thread-safe.
class Device {
 public:
  // Gets results, several at a time where several came together, on a thread of
  // the device. May call Submit(). Must not block: the device stands still.
  using Done = std::function<void(std::span<DeviceResult>)>;

  // For how long the caller has enough to do without new results; 0 if it waits
  // for them.
  using Patience = std::function<std::chrono::microseconds()>;

  // Delivers the results of all reads in flight, also of those that `done`
  // submits meanwhile, then joins the threads.
  // REQUIRES: no Submit() runs but from `done`; not called by `done`.
  virtual ~Device() = default;

  // Starts the reads, in this order as far as the device has one. Does not wait
  // for I/O. Each read gets exactly one result, never before Submit() was
  // called but perhaps before it returns. The device queues what is more than
  // its depth: bounding the number in flight is the caller's business.
  // REQUIRES: no buffer is empty.
  virtual void Submit(std::span<const DeviceRead> reads) = 0;

  // Lets the device keep results back, and new reads away from the drive, for
  // as long as `patience` says, so that one turn of its thread, one submission
  // and one interrupt do for many reads. Asked on the device's thread, again
  // and again; must not block nor call the device.
  virtual void SetPatience(Patience /*patience*/) {}  // NOLINT(*-value-param)

  // Whether urgent reads reach the drive as such, if it has priorities.
  virtual bool takes_priorities() const { return false; }

  // "io_uring", "pread", or "model:" and the modelled drive's name.
  virtual std::string name() const = 0;
};

struct OpenedDevice {
  std::unique_ptr<Device> device;
  // Why io_uring was passed over; empty if it was not.
  std::string note;
};

// Makes a device that delivers to the given function; how a store is put on
// something other than the engines below (a modelled disk, a faulty one).
using DeviceFactory = std::function<absl::StatusOr<OpenedDevice>(Device::Done)>;

// Opens the engine, or for kAuto the first that works here: containers and
// hardened kernels often forbid io_uring. `depth`: reads at work at once.
// Errors: FailedPrecondition  the engine asked for does not work here; says why
//                             and what to do.
//         InvalidArgument     depth is 0 or over kDeviceDepthMax.
absl::StatusOr<OpenedDevice> OpenDevice(DeviceEngine engine, uint32_t depth,
                                        Device::Done done);

inline constexpr uint32_t kDeviceDepthMax = 4096;

// For engines: what an errno means, in words; the status of a read that failed
// with `error` (an errno), and of one that met the end of the file.
absl::string_view ErrorText(int error);
absl::Status DeviceErrorStatus(const DeviceRead& read, int error);
absl::Status EndOfFileStatus(const DeviceRead& read, size_t size_bytes);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_DEVICE_DEVICE_H_
