// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/device/extent_map.h"

#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"

#include "server/storage/device/device.h"

namespace quire {
namespace {

constexpr uint32_t kExtentsPerCall = 512;
// With any of these flags the bytes are not stored unchanged at the reported
// position.
constexpr uint32_t kNoPlaceFlags =
    FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_ENCODED |
    FIEMAP_EXTENT_NOT_ALIGNED | FIEMAP_EXTENT_DATA_INLINE |
    FIEMAP_EXTENT_DATA_TAIL | FIEMAP_EXTENT_UNWRITTEN;
constexpr uint64_t kFileEnd = std::numeric_limits<int64_t>::max();

// The kernel's structure ends with the array that it fills.
class FiemapRequest {
 public:
  FiemapRequest()
      : words_((sizeof(fiemap) + kExtentsPerCall * sizeof(fiemap_extent)) /
               sizeof(uint64_t)) {}

  // Returns false and sets errno if the kernel fails.
  bool Ask(int fd, uint64_t start) {
    fiemap header{};
    header.fm_start = start;
    header.fm_length = FIEMAP_MAX_OFFSET - start;
    header.fm_extent_count = kExtentsPerCall;
    std::memcpy(words_.data(), &header, sizeof(header));
    return ioctl(fd, FS_IOC_FIEMAP, words_.data()) == 0;
  }

  uint32_t extent_count() const {
    fiemap header{};
    std::memcpy(&header, words_.data(), sizeof(header));
    return std::min(header.fm_mapped_extents, kExtentsPerCall);
  }

  // REQUIRES: index < extent_count().
  fiemap_extent extent(uint32_t index) const {
    fiemap_extent extent{};
    std::memcpy(
        &extent,
        words_.data() +
            (sizeof(fiemap) + index * sizeof(fiemap_extent)) / sizeof(uint64_t),
        sizeof(extent));
    return extent;
  }

 private:
  static_assert(sizeof(fiemap) % sizeof(uint64_t) == 0);
  static_assert(sizeof(fiemap_extent) % sizeof(uint64_t) == 0);
  std::vector<uint64_t> words_;
};

}  // namespace

ExtentMap::ExtentMap(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    Append(run);
  }
}

void ExtentMap::Append(const Run& run) {
  // The last piece is a run.
  if (!pieces_.empty() && run.start.value == end_ &&
      run.physical == pieces_.back().physical + (end_ - pieces_.back().start)) {
    end_ += run.size_bytes;
    return;
  }
  if (run.start.value > end_) {
    pieces_.push_back({.start = end_, .physical = kUnknown});
  }
  pieces_.push_back({.start = run.start.value, .physical = run.physical});
  end_ = run.start.value + run.size_bytes;
  ++run_count_;
}

absl::StatusOr<ExtentMap> ExtentMap::Read(int fd, size_t runs_max) {
  ExtentMap map;
  FiemapRequest request;
  uint64_t start = 0;
  while (true) {
    if (!request.Ask(fd, start)) {
      const int error = errno;
      return error == EOPNOTSUPP || error == ENOTTY || error == EINVAL ||
                     error == ENOSYS
                 ? absl::UnimplementedError(
                       "the file system does not report extents")
                 : absl::UnavailableError(
                       absl::StrCat("FIEMAP: ", ErrorText(error)));
    }
    const uint32_t count = request.extent_count();
    if (count == 0) {
      break;
    }
    bool is_last = false;
    for (uint32_t i = 0; i < count; ++i) {
      const fiemap_extent extent = request.extent(i);
      const uint64_t end = extent.fe_logical + extent.fe_length;
      // Check the kernel's answer as strictly as the contents of a file.
      if (extent.fe_logical < start || end <= extent.fe_logical ||
          end > kFileEnd || extent.fe_physical > kFileEnd) {
        return absl::UnavailableError("FIEMAP: the answer makes no sense");
      }
      if ((extent.fe_flags & kNoPlaceFlags) == 0) {
        map.Append({.start = FileOffset{extent.fe_logical},
                    .size_bytes = extent.fe_length,
                    .physical = extent.fe_physical});
      }
      if (map.run_count() > runs_max) {
        return absl::ResourceExhaustedError(
            absl::StrCat("the file has more than ", runs_max, " pieces"));
      }
      is_last = (extent.fe_flags & FIEMAP_EXTENT_LAST) != 0;
      start = end;
    }
    if (is_last) {
      break;
    }
  }
  map.pieces_.shrink_to_fit();
  return map;
}

ExtentMap::Place ExtentMap::Find(FileOffset offset) const {
  if (offset.value >= end_) {
    return {.physical = std::nullopt, .end = FileOffset{kFileEnd}};
  }
  // The first piece starts at 0.
  const auto next = std::upper_bound(
      pieces_.begin(), pieces_.end(), offset.value,
      [](uint64_t value, const Piece& piece) { return value < piece.start; });
  const Piece& piece = *(next - 1);
  const FileOffset end{next == pieces_.end() ? end_ : next->start};
  if (piece.physical == kUnknown) {
    return {.physical = std::nullopt, .end = end};
  }
  return {.physical = piece.physical + (offset.value - piece.start),
          .end = end};
}

}  // namespace quire
