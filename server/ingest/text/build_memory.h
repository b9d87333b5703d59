// SPDX-License-Identifier: GPL-3.0-or-later
//
// Memory budget for the tables of a reordered build.
#ifndef QUIRE_SERVER_INGEST_BUILD_MEMORY_H_
#define QUIRE_SERVER_INGEST_BUILD_MEMORY_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"

namespace quire {

inline constexpr uint64_t kBuildMemoryBytesDefault = kGiB;

// Thread-compatible.
class BuildMemory {
 public:
  explicit BuildMemory(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  uint64_t limit_bytes() const { return limit_bytes_; }

  // Maximum of all Hold() calls.
  uint64_t held_bytes_max() const { return held_bytes_max_; }

  // Records that the tables take `bytes` in total once the fraction
  // `share_done` of the text, in (0, 1], is processed.
  // Errors: ResourceExhausted  over the limit; estimates a sufficient one.
  absl::Status Hold(uint64_t bytes, double share_done = 1) {
    if (bytes > limit_bytes_) {
      const double enough_bytes =
          static_cast<double>(bytes) * kReserve / share_done;
      return absl::ResourceExhaustedError(absl::StrCat(
          "the tables of --reorder take at least ", FormatByteSize(bytes),
          " of memory for what has been read, and --build-memory is ",
          FormatByteSizeExact(limit_bytes_), "; give about ",
          FormatByteSizeExact(static_cast<uint64_t>(enough_bytes) / kKiB *
                              kKiB),
          ", or a smaller --segment-size"));
    }
    held_bytes_max_ = std::max(held_bytes_max_, bytes);
    return absl::OkStatus();
  }

 private:
  // Reserve for later tables.
  static constexpr double kReserve = 1.5;

  uint64_t limit_bytes_;
  uint64_t held_bytes_max_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_BUILD_MEMORY_H_
