// SPDX-License-Identifier: GPL-3.0-or-later
//
// Of DeviceBlockStore, the second read of blocks whose first gave no good
// bytes.
#include <fcntl.h>

#include "server/storage/device_block_store.h"

namespace quire {

void DeviceBlockStore::MarkRepeated(Flight& flight) {
  stats_.repeated_blocks += flight.repeated ? 0 : 1;
  flight.repeated = true;
}

void DeviceBlockStore::DropFromPageCache(const Extent& extent) {
  // The kernel keeps pages that are named in part.
  constexpr uint64_t kPageMask = 4096 - 1;
  const uint64_t start = extent.offset.value & ~kPageMask;
  const uint64_t end =
      (extent.offset.value + extent.size_bytes + kPageMask) & ~kPageMask;
  // Advice: where it is not taken the second read gives what the first gave.
  posix_fadvise(extent.fd, static_cast<off_t>(start),
                static_cast<off_t>(end - start), POSIX_FADV_DONTNEED);
}

bool DeviceBlockStore::ReadAgain(Flight& flight) {
  if (flight.repeated || stopping_) {
    return false;
  }
  MarkRepeated(flight);
  flight.reading = false;
  stats_.queued_fetches += flight.waiters.size();
  BlockRun run = {&flight};
  Queue(run);
  return true;
}

}  // namespace quire
