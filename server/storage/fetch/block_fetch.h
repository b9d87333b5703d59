// SPDX-License-Identifier: GPL-3.0-or-later
//
// One block to be fetched: where it lies, who waits for it, and what decodes
// it.
#ifndef QUIRE_SERVER_STORAGE_FETCH_BLOCK_FETCH_H_
#define QUIRE_SERVER_STORAGE_FETCH_BLOCK_FETCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

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
  // `stored` is all of the block's extent, straight from the device and not yet
  // checked; `raw` has the block's decoded size.
  // Errors: DataLoss.
  virtual absl::Status Decode(BlockAddress block, ByteView stored,
                              MutableByteView raw) const = 0;

  // A part of a block's text, for the decoder to write.
  struct PartText {
    uint32_t offset_in_block = 0;
    MutableByteView text;
  };

  // Decodes parts of a block of `raw_size_bytes`, which need not be neighbours.
  // This default decodes the whole block and copies.
  // Errors: as Decode().
  virtual absl::Status DecodeParts(BlockAddress block, ByteView stored,
                                   uint32_t raw_size_bytes,
                                   std::span<const PartText> parts) const {
    std::vector<uint8_t> raw(raw_size_bytes);
    absl::Status status = Decode(block, stored, raw);
    for (const PartText& part : parts) {
      std::copy_n(raw.begin() + part.offset_in_block, part.text.size(),
                  part.text.begin());
    }
    return status;
  }

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
  // Of the part, if the block is decoded in parts.
  BlockKey key;
  Extent extent;
  // Of the whole block.
  uint32_t raw_size_bytes = 0;
  // Text in each part but the last: a multiple of 4096 of which the block has
  // at most kBlockPartsMax. 0: blocks are decoded whole. Parts of one block
  // share its read; each is decoded, cached and counted by itself.
  uint32_t part_size_bytes = 0;
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

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_FETCH_BLOCK_FETCH_H_
