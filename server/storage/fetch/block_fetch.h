// SPDX-License-Identifier: GPL-3.0-or-later
//
// One block to be fetched: where it lies, who waits for it, and what decodes
// it.
#ifndef QUIRE_SERVER_STORAGE_FETCH_BLOCK_FETCH_H_
#define QUIRE_SERVER_STORAGE_FETCH_BLOCK_FETCH_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/base/positions.h"
#include "server/storage/base/block_types.h"
#include "server/storage/device/file_placement.h"
#include "server/storage/fetch/fetch_times.h"

namespace quire {

// Turns what a device returned into text; injected, so that storage knows
// neither formats nor codecs.
// Thread-safe: called from all threads of the decode pool at once.
class BlockDecoder {
 public:
  virtual ~BlockDecoder() = default;
  // Decodes parts of a block's text, which need not be neighbours. `stored` is
  // all of the block's extent, straight from the device and not yet checked.
  // Errors: DataLoss.
  virtual absl::Status Decode(BlockAddress block, ByteView stored,
                              std::span<const BlockPart> parts) const = 0;

  // Called for a block that Decode() found damaged, also after its second read,
  // or that lies past the end of its file, with the status (DataLoss) that its
  // fetches end with, before they do.
  virtual void NoteDamage(BlockAddress /*block*/,
                          const absl::Status& /*status*/) const {}
};

// Names a fetch that has not ended yet; 0 names none.
using FetchId = uint64_t;

// Told how a fetch ended.
using FetchDone = std::function<void(absl::StatusOr<BlockPtr>)>;

struct BlockFetch {
  // Of the part.
  BlockKey key;
  Extent extent;
  // Of the whole block.
  uint32_t raw_size_bytes = 0;
  // Text in each part but the last; a block has at most kBlockPartsMax parts.
  // Parts of one block share its read; each is decoded, cached and counted by
  // itself.
  uint32_t part_size_bytes = std::numeric_limits<uint32_t>::max();
  // All parts are to be decoded and offered to the cache, not this one alone.
  bool all_parts = false;
  FetchClass fetch_class = FetchClass::kInteractive;
  // The requester: within a class, clients with few fetches do not wait for
  // clients with many. Any number; of fetches that share a read the first one's
  // counts.
  uint64_t client_id = 0;
  // Also keeps extent.fd open until the fetch has ended.
  std::shared_ptr<const BlockDecoder> decoder;
  // Of extent.fd: whose queue the fetch joins, and where. Null, or of a drive
  // that the store does not know: the store's first drive, and the order of
  // files and offsets.
  std::shared_ptr<const FilePlacement> placement = nullptr;
  // Gets where the fetch's time went, before `done` is called, if the block is
  // not cached. May be null.
  std::shared_ptr<FetchTimes> times = nullptr;
};

inline uint32_t PartCount(const BlockFetch& fetch) {
  return static_cast<uint32_t>(
      (uint64_t{fetch.raw_size_bytes} + fetch.part_size_bytes - 1) /
      fetch.part_size_bytes);
}

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_FETCH_BLOCK_FETCH_H_
