// SPDX-License-Identifier: GPL-3.0-or-later
//
// Decoded blocks, from the cache or from a device: what the service asks for
// and all it sees of storage.
#ifndef QUIRE_SERVER_STORAGE_BLOCK_STORE_H_
#define QUIRE_SERVER_STORAGE_BLOCK_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/archive/positions.h"
#include "server/storage/buffer_pool.h"
#include "server/storage/drive_kind.h"
#include "server/storage/file_placement.h"

namespace quire {

// Names a block within this process, for ever: archives that are opened anew
// get a new source_id.
struct BlockKey {
  uint64_t source_id = 0;
  BlockAddress block;

  auto operator<=>(const BlockKey&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const BlockKey& key) {
    return H::combine(std::move(h), key.source_id, key.block.segment_index,
                      key.block.block_index);
  }
};

// The text of one block. Immutable; whoever holds the pointer may read it.
class DecodedBlock {
 public:
  virtual ~DecodedBlock() = default;
  virtual ByteView bytes() const = 0;

  // bytes() is not the text but what BlockDecoder::Pack() made of it.
  virtual bool is_packed() const { return false; }
};

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

  // Told of a block that Decode() found damaged, also when it was read again:
  // what it said at last. Called before those who fetched the block hear of it.
  virtual void NoteDamage(BlockAddress /*block*/,
                          const absl::Status& /*status*/) const {}

  // Whether the cache is to hold what Pack() makes of blocks.
  virtual bool packs() const { return false; }

  // Writes another form of a block's text, smaller than the text, to what
  // `allocate` returns for its size; that may be empty, for lack of memory.
  // False if that came to pass or the text has no smaller form.
  virtual bool Pack(
      ByteView /*raw*/,
      const std::function<MutableByteView(size_t)>& /*allocate*/) const {
    return false;
  }
};

// Who waits: decides what goes first when devices are busy.
enum class FetchClass {
  kInteractive,
  kBatch,
  kScan,
};

struct BlockFetch {
  BlockKey key;
  Extent extent;
  uint32_t raw_size_bytes = 0;
  FetchClass fetch_class = FetchClass::kInteractive;
  // Whoever asks: within a class, those with few fetches do not wait for those
  // with many. Any numbers; of fetches that share a read the first one's
  // counts.
  uint64_t client_id = 0;
  // Where a block is read that the cache is to hold packed, both forms are
  // there: whoever asked takes the text unless this is set. A block from the
  // cache comes as it is.
  bool takes_packed = false;
  // Also keeps extent.fd open until the fetch has ended.
  std::shared_ptr<const BlockDecoder> decoder;
  // Of extent.fd: whose queue the fetch joins, and where. Null, or of a drive
  // that the store does not know: the store's first drive, and the order of
  // files and offsets.
  std::shared_ptr<const FilePlacement> placement = nullptr;
};

struct BlockStoreOptions {
  // Affects memory. The cache holds at most this much: blocks, each rounded up
  // to whole pages, and what is kept about them. 0: no cache.
  uint64_t cache_size_bytes = uint64_t{256} << 20;
  // Device reads and decoded blocks that are neither cached nor handed out yet,
  // and the pages that are kept for the next of them. A block that needs more
  // is still read, alone. Not in either bound: blocks that callers hold on to
  // after the cache let go of them, and about 400 bytes for each fetch pending.
  uint64_t buffers_size_bytes_max = uint64_t{64} << 20;
  // Fetches that may wait; past it Fetch() fails with ResourceExhausted.
  uint32_t pending_fetches_max = 1 << 17;

  // Affects performance.
  // 0: one for each core.
  uint32_t decode_threads = 0;
  // "auto" takes io_uring where the kernel allows it and pread otherwise.
  enum class Engine { kAuto, kIoUring, kPread };
  Engine engine = Engine::kAuto;
  // Reads in flight at each drive.
  uint32_t device_depth = 32;
  // Whether extents that have a direct_fd are read through it, widened to its
  // alignment; where that fails they are read again through their fd.
  bool direct_io = false;
  // What is read from: each drive has its own queue and engine. None: one of
  // which nothing is known. A modelled drive knows for itself.
  std::vector<DriveInfo> drives = {};
  // Makes reads take as long as this drive would; empty: as long as they take.
  // One of DrivePresets() (model/drive_presets.h).
  std::string device_model = {};
};

// One drive as the store uses it.
struct DriveDescription {
  DriveInfo drive;
  // "io_uring", "pread", or "model:" and the drive's name.
  std::string engine;
  // Urgent reads are marked as such for the drive.
  bool uses_priorities = false;
  // Why the engine is not io_uring, or why priorities are not used, although
  // that was possible; empty otherwise.
  std::string note;
};

struct DriveStats {
  std::string name;
  uint64_t reads = 0;
  uint64_t read_bytes = 0;
  uint64_t errors = 0;
  // Levels: requests that wait, each perhaps for several fetches, and reads at
  // the drive.
  uint64_t queued_requests = 0;
  uint64_t reads_in_flight = 0;
};

// Monotonous counters and current levels, for metrics.
struct BlockStoreStats {
  // Each Lookup() that found its block and each Fetch() counts once.
  uint64_t cache_hits = 0;
  uint64_t cache_misses = 0;
  uint64_t cache_evictions = 0;
  uint64_t cache_size_bytes = 0;
  uint64_t cache_blocks = 0;
  // Fetches that found one for the same block in flight.
  uint64_t joined_fetches = 0;
  uint64_t device_reads = 0;
  uint64_t device_read_bytes = 0;
  uint64_t device_errors = 0;
  uint64_t blocks_decoded = 0;
  uint64_t decoded_bytes = 0;
  // Checksum or codec failures, of which callers were told.
  uint64_t decode_failures = 0;
  // Blocks that were read a second time, because of a device error or because
  // their bytes did not decode; and those of them whose second read was good.
  uint64_t repeated_blocks = 0;
  uint64_t healed_blocks = 0;
  uint64_t cancelled_fetches = 0;
  // Of all device requests together, from Fetch() until their read was started.
  uint64_t queue_wait_us = 0;
  // Levels: fetches not yet at the device, and reads at the device.
  uint64_t queued_fetches = 0;
  uint64_t device_reads_in_flight = 0;
  uint64_t buffers_size_bytes = 0;
  // As Drives() has them.
  std::vector<DriveStats> drives = {};
};

// Thread-safe.
class BlockStore {
 public:
  using BlockPtr = std::shared_ptr<const DecodedBlock>;
  using Done = std::function<void(absl::StatusOr<BlockPtr>)>;
  // Names a fetch that has not ended yet; 0 names none.
  using FetchId = uint64_t;

  // Starts the device threads and the decode pool.
  // Errors: FailedPrecondition  the engine asked for does not work here; the
  //                             message says why.
  //         InvalidArgument     an option is out of range, or there is no such
  //                             drive model.
  static absl::StatusOr<std::unique_ptr<BlockStore>> Create(
      const BlockStoreOptions& options);

  // Ends all fetches (with Cancelled where they were still queued), then joins
  // its threads. Blocks that were handed out stay valid.
  // REQUIRES: no other call runs, and this is not called by a `done`.
  virtual ~BlockStore() = default;

  // The block if it is in the cache, else null. Counts as a hit or as nothing:
  // the Fetch() that follows counts the miss. Never blocks on I/O. Marks the
  // block as in demand: scans call Fetch() alone, which does not.
  virtual BlockPtr Lookup(const BlockKey& key) = 0;

  // Gets a block. `done` is called exactly once, on a thread of the decode pool
  // or, where the block is cached or the fetch is refused, on this one before
  // Fetch() returns. It must not block. No lock is held while it runs.
  // Fetches of one block that overlap in time share one read and one decoding.
  // A block that the device fails to read, or that does not decode, is read
  // once more, from the drive where the system lets us, before `done` hears of
  // it.
  // Returns the fetch's id, or 0 if `done` has run already.
  // Errors, through `done`: DataLoss (from the decoder, or the file ends
  // early), Unavailable (device error), ResourceExhausted (queue full, or no
  // memory), Cancelled, InvalidArgument (empty extent or no decoder).
  virtual FetchId Fetch(BlockFetch fetch, Done done) = 0;

  // Fetch() for each, in one step: neighbours that are asked for together are
  // read together even where the device idles. Returns the ids in their order.
  struct FetchItem {
    BlockFetch fetch;
    Done done;
  };

  virtual std::vector<FetchId> FetchAll(std::vector<FetchItem> items) {
    std::vector<FetchId> ids;
    ids.reserve(items.size());
    for (FetchItem& item : items) {
      ids.push_back(Fetch(std::move(item.fetch), std::move(item.done)));
    }
    return ids;
  }

  // Withdraws a fetch: if its read has not started, `done` gets Cancelled (on
  // this thread, before Cancel() returns) and no I/O takes place on its behalf.
  // Otherwise, or if it has ended, nothing happens.
  virtual void Cancel(FetchId id) = 0;

  // Memory as blocks have it, for what is made of them; outside of all bounds
  // of the options. Empty if the system gives none.
  virtual Buffer Allocate(size_t size_bytes) = 0;

  // Runs `task` on a thread of the decode pool: for work that is too long for
  // the caller's thread. All tasks have run before the store is gone.
  virtual void Run(std::function<void()> task) = 0;

  // Gives a drive a queue and an engine unless it has them: for files that are
  // opened later. Blocks for a moment.
  // Errors: as Create().
  virtual absl::Status AddDrive(const DriveInfo& drive) = 0;

  // Of the first drive: "io_uring", "pread", or "model:" and the drive's name.
  virtual std::string engine_name() const = 0;

  // In the order in which they were added. For the log.
  virtual std::vector<DriveDescription> Drives() const = 0;

  virtual BlockStoreStats Stats() const = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_BLOCK_STORE_H_
