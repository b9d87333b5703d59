// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/chunk_map.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/storage/device/device.h"

namespace quire {
namespace {

uint64_t DivideUp(uint64_t size, uint64_t by) {
  return size / by + (size % by == 0 ? 0 : 1);
}

absl::Status SystemError(absl::string_view action) {
  return absl::UnavailableError(
      absl::StrCat("cannot ", action, ": ", ErrorText(errno)));
}

}  // namespace

ChunkMap::ChunkMap(uint64_t size_bytes, uint32_t chunk_size_bytes,
                   uint64_t kept_first, ChunkRange hole)
    : size_bytes_(size_bytes),
      chunk_size_bytes_(chunk_size_bytes),
      count_(DivideUp(size_bytes, chunk_size_bytes)),
      kept_first_(kept_first),
      hole_(hole),
      present_(DivideUp(count_, kBits)),
      allocated_(present_.size()),
      used_(present_.size()) {}

std::vector<ChunkRange> ChunkMap::KeptRanges() const {
  const uint64_t hole_first = std::min(hole_.first, count_);
  const uint64_t kept_first = std::min(kept_first_, count_);
  std::vector<ChunkRange> ranges;
  for (const ChunkRange range :
       {ChunkRange{.first = 0, .count = std::min<uint64_t>(1, count_)},
        ChunkRange{
            .first = kept_first,
 .count = hole_.count == 0 ? count_ - kept_first : hole_first - kept_first},
        ChunkRange{.first = hole_.end(),
        .count = hole_.count == 0 ? 0 : count_ - hole_.end()}}) {
    if (range.count == 0) {
      continue;
    }
    if (!ranges.empty() && range.first <= ranges.back().end()) {
      ranges.back().count = range.end() - ranges.back().first;
    } else {
      ranges.push_back(range);
    }
  }
  return ranges;
}

uint64_t ChunkMap::MemoryBytes(uint64_t size_bytes, uint32_t chunk_size_bytes) {
  return 3 * sizeof(uint64_t) *
         DivideUp(DivideUp(size_bytes, chunk_size_bytes), kBits);
}

ChunkRange ChunkMap::Covering(uint64_t offset, uint64_t size) const {
  const uint64_t first = offset / chunk_size_bytes_;
  return {.first = first,
          .count = DivideUp(offset + size, chunk_size_bytes_) - first};
}

uint64_t ChunkMap::SizeOf(ChunkRange range) const {
  return std::min(size_bytes_, StartOf(range.end())) - StartOf(range.first);
}

uint64_t ChunkMap::SpaceOf(ChunkRange range) const {
  constexpr uint64_t kSpaceUnitBytes = 4096;
  return DivideUp(SizeOf(range), kSpaceUnitBytes) * kSpaceUnitBytes;
}

bool ChunkMap::AllPresent(ChunkRange range) const {
  for (uint64_t chunk = range.first; chunk < range.end(); ++chunk) {
    if (!IsPresent(chunk)) {
      return false;
    }
  }
  return true;
}

std::vector<ChunkRun> ChunkMap::Runs(ChunkRange range) const {
  std::vector<ChunkRun> runs;
  for (uint64_t chunk = range.first; chunk < range.end(); ++chunk) {
    const bool is_present = IsPresent(chunk);
    if (runs.empty() || runs.back().is_present != is_present) {
      runs.push_back(
          {.range = {.first = chunk, .count = 0}, .is_present = is_present});
    }
    ++runs.back().range.count;
  }
  return runs;
}

uint64_t ChunkMap::UnallocatedBytes(ChunkRange range) const {
  uint64_t bytes = 0;
  for (uint64_t chunk = range.first; chunk < range.end(); ++chunk) {
    bytes += IsAllocated(chunk) ? 0 : SpaceOf({.first = chunk, .count = 1});
  }
  return bytes;
}

void ChunkMap::BeginWrite(ChunkRange range) {
  for (uint64_t chunk = range.first; chunk < range.end(); ++chunk) {
    Set(allocated_, chunk);
    Clear(used_, chunk);
    writing_.insert(chunk);
  }
}

void ChunkMap::EndWrite(ChunkRange range) {
  for (uint64_t chunk = range.first; chunk < range.end(); ++chunk) {
    Set(present_, chunk);
    Set(allocated_, chunk);
    writing_.erase(chunk);
  }
}

void ChunkMap::Drop(ChunkRange range) {
  for (uint64_t chunk = range.first; chunk < range.end(); ++chunk) {
    Clear(present_, chunk);
    Clear(allocated_, chunk);
    Clear(used_, chunk);
    writing_.erase(chunk);
  }
}

void ChunkMap::Invalidate(ChunkRange range) {
  for (uint64_t chunk = range.first; chunk < range.end(); ++chunk) {
    Clear(present_, chunk);
  }
}

void ChunkMap::Pin(ChunkRange range) {
  for (uint64_t chunk = range.first; chunk < range.end(); ++chunk) {
    ++pins_[chunk];
    Set(used_, chunk);
  }
}

void ChunkMap::Unpin(ChunkRange range) {
  for (uint64_t chunk = range.first; chunk < range.end(); ++chunk) {
    const auto pin = pins_.find(chunk);
    if (--pin->second == 0) {
      pins_.erase(pin);
    }
  }
}

std::optional<uint64_t> ChunkMap::NextVictim(uint64_t from) {
  for (uint64_t chunk = from; chunk < count_;) {
    const uint64_t rest = allocated_[chunk / kBits] >> (chunk % kBits);
    if (rest == 0) {
      chunk = (chunk / kBits + 1) * kBits;
      continue;
    }
    chunk += static_cast<uint64_t>(std::countr_zero(rest));
    if (IsKept(chunk) || !IsIdle(chunk)) {
      ++chunk;
    } else if (Has(used_, chunk)) {
      Clear(used_, chunk);
      ++chunk;
    } else {
      return chunk;
    }
  }
  return std::nullopt;
}

absl::Status FindPresentChunks(int fd, ChunkMap& map) {
  uint64_t offset = 0;
  while (offset < map.size_bytes()) {
    const off_t data = lseek(fd, static_cast<off_t>(offset), SEEK_DATA);
    if (data < 0 && errno == ENXIO) {
      return absl::OkStatus();
    }
    const off_t hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
    if (hole < 0) {
      return SystemError("look for data");
    }
    const auto start = static_cast<uint64_t>(data);
    const uint64_t end =
        std::min(map.size_bytes(), static_cast<uint64_t>(hole));
    if (start >= end) {
      return absl::OkStatus();
    }
    const ChunkRange all = map.Covering(start, end - start);
    for (uint64_t chunk = all.first; chunk < all.end(); ++chunk) {
      const ChunkRange one = {.first = chunk, .count = 1};
      if (map.StartOf(chunk) >= start &&
          map.StartOf(chunk) + map.SizeOf(one) <= end) {
        map.EndWrite(one);
      } else {
        QUIRE_RETURN_IF_ERROR(PunchChunks(fd, map, one));
      }
    }
    // The last chunk may have been punched out with later data.
    offset = std::max(end, std::min(map.size_bytes(), map.StartOf(all.end())));
  }
  return absl::OkStatus();
}

absl::Status PunchChunks(int fd, const ChunkMap& map, ChunkRange range) {
  // Up to a whole chunk, also at the end of the file: a partial page would be
  // zeroed instead of freed.
  const uint64_t start = map.StartOf(range.first);
  const uint64_t size_bytes = map.StartOf(range.end()) - start;
  while (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                   static_cast<off_t>(start),
                   static_cast<off_t>(size_bytes)) != 0) {
    if (errno == EOPNOTSUPP || errno == ENOSYS) {
      return absl::UnimplementedError(
          "this file system does not support holes in files");
    }
    if (errno != EINTR) {
      return SystemError("punch a hole");
    }
  }
  return absl::OkStatus();
}

}  // namespace quire
