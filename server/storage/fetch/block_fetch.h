// SPDX-License-Identifier: GPL-3.0-or-later
//
// A block to be fetched: its location, its client and its decoder.
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

// Decodes the bytes of a device read; injected, so that storage knows neither
// formats nor codecs.
// Thread-safe: called from all threads of the decode pool.
class BlockDecoder {
 public:
  virtual ~BlockDecoder() = default;
  // Decodes parts of a block's text, which need not be adjacent. `stored` is
  // the block's whole extent, straight from the device and not yet checked.
  // Errors: DataLoss.
  virtual absl::Status Decode(BlockAddress block, ByteView stored,
                              std::span<const BlockPart> parts) const = 0;

  // Called for a block that Decode() found damaged, including its second read,
  // or that lies past the end of its file. `status` (DataLoss) is the result of
  // its fetches, which end afterwards.
  virtual void NoteDamage(BlockAddress /*block*/,
                          const absl::Status& /*status*/) const {}
};

// Identifies a fetch that has not ended; 0 is none.
using FetchId = uint64_t;

// Receives the result of a fetch.
using FetchDone = std::function<void(absl::StatusOr<BlockPtr>)>;

struct BlockFetch {
  // Key of the part.
  BlockKey key;
  Extent extent;
  // Size of the whole block.
  uint32_t raw_size_bytes = 0;
  // Text in each part except the last; a block has at most kBlockPartsMax
  // parts. Parts of one block share its read; each is decoded, cached and
  // counted separately.
  uint32_t part_size_bytes = std::numeric_limits<uint32_t>::max();
  // Decode all parts and offer them to the cache, not only this one.
  bool all_parts = false;
  FetchClass fetch_class = FetchClass::kInteractive;
  // The requester, any number. Within a class, clients with few fetches do not
  // wait for clients with many. Fetches that share a read use the first one's.
  uint64_t client_id = 0;
  // Also keeps extent.fd open until the fetch has ended.
  std::shared_ptr<const BlockDecoder> decoder;
  // Placement of extent.fd: selects the drive's queue and the position in it.
  // Null, or of an unknown drive: the store's first drive, by file and offset.
  std::shared_ptr<const FilePlacement> placement = nullptr;
  // Receives the times of the fetch, before `done` is called, if the block is
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
