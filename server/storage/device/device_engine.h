// SPDX-License-Identifier: GPL-3.0-or-later
//
// Interfaces of the operating system for reads.
#ifndef QUIRE_SERVER_STORAGE_DEVICE_DEVICE_ENGINE_H_
#define QUIRE_SERVER_STORAGE_DEVICE_DEVICE_ENGINE_H_

namespace quire {

// kAuto uses io_uring if the kernel allows it and pread otherwise.
enum class DeviceEngine { kAuto, kIoUring, kPread };

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_DEVICE_DEVICE_ENGINE_H_
