// SPDX-License-Identifier: GPL-3.0-or-later
//
// From a range of the logical space to the decoded blocks that cover it.
#ifndef QUIRE_SERVER_SERVICE_RANGE_READ_H_
#define QUIRE_SERVER_SERVICE_RANGE_READ_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/mutex.h"
#include "server/archive/archive.h"
#include "server/service/catalog.h"
#include "server/storage/block_store.h"

namespace quire {

// The form in which blocks are fetched.
enum class BlockForm {
  // The text; packed where the cache holds it so (BlockDecoder::Pack()).
  kText,
  // Packed if the cache is to hold it so, also where it is not there yet.
  kPacked,
  // As MakeStoredReader() says.
  kStored,
};

// Who waits for a read, for the scheduler.
struct Asker {
  FetchClass fetch_class = FetchClass::kInteractive;
  // As BlockFetch::client_id.
  uint64_t client_id = 0;
};

// A part of a block. Keeps the block. Of a block that is not text, what
// RangeRead returns is the place in its text.
struct BlockPiece {
  BlockStore::BlockPtr block;
  uint32_t offset = 0;
  uint32_t size_bytes = 0;

  ByteView bytes() const { return block->bytes().subspan(offset, size_bytes); }
};

// XXH3 of all pieces in a row.
uint64_t ChecksumOf(const std::vector<BlockPiece>& pieces);

// The error of a block as RangeRead::Done has it.
absl::Status ExplainBlockError(const ServedArchive& archive,
                               const absl::Status& status, BlockAddress block);

class RangeRead;

// The fetches of several ranges, for the store to see at once: blocks that lie
// side by side are then read together, where each alone would go to an idle
// device as soon as it came. Thread-compatible.
class FetchBundle {
 public:
  // Starts what was added since the last call; the callbacks of fetches that
  // end at once are called from here.
  // REQUIRES: as the last, for reads that were added: they wait for it.
  void Start(BlockStore& store);

 private:
  friend class RangeRead;

  struct Part {
    std::shared_ptr<RangeRead> read;
    size_t fetch_count = 0;
  };

  std::vector<BlockStore::FetchItem> fetches_;
  std::vector<Part> parts_;
};

// Fetches all blocks of one range at once.
class RangeRead : public std::enable_shared_from_this<RangeRead> {
 public:
  // The pieces in logical order, or the first error: DataLoss becomes
  // BLOCK_DAMAGED and names archive, segment and block; Unavailable becomes
  // DEVICE_FAILED, ResourceExhausted becomes SERVER_BUSY.
  using Done = std::function<void(absl::StatusOr<std::vector<BlockPiece>>)>;

  // Looks each block up in the cache. True if all of them are there: `pieces`
  // is then what a read would end with, in the form that the cache holds it in;
  // otherwise pieces of blocks that are not have none.
  static bool FindCached(BlockStore& store, const ServedArchive& archive,
                         const std::vector<BlockSlice>& slices, BlockForm form,
                         FetchClass fetch_class,
                         std::vector<BlockPiece>& pieces);

  // As Start(), of pieces that FindCached() has looked up, not all with
  // success.
  static std::shared_ptr<RangeRead> StartMissing(
      BlockStore& store, std::shared_ptr<const ServedArchive> archive,
      std::vector<BlockSlice> slices, BlockForm form, Asker asker,
      std::vector<BlockPiece> pieces, Done done, FetchBundle* bundle = nullptr);

  // Calls `done` exactly once: before returning where all blocks are cached
  // (the result is then null), otherwise on a thread of the store.
  // With a `bundle`, fetches begin with its Start().
  // `store` must outlive the read.
  static std::shared_ptr<RangeRead> Start(
      BlockStore& store, std::shared_ptr<const ServedArchive> archive,
      std::vector<BlockSlice> slices, BlockForm form, Asker asker, Done done,
      FetchBundle* bundle = nullptr);

  // Withdraws what has not reached the device; `done` gets Cancelled, perhaps
  // before this returns, unless it has had its call already.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class FetchBundle;

  RangeRead(BlockStore& store, std::shared_ptr<const ServedArchive> archive,
            std::vector<BlockSlice> slices, BlockForm form, Done done);

  BlockFetch FetchOf(BlockAddress block, Asker asker) const;
  std::vector<BlockStore::FetchItem> Misses(Asker asker)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // What the store made of Misses().
  void Started(std::vector<BlockStore::FetchId> fetches)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnBlock(size_t index, absl::StatusOr<BlockStore::BlockPtr> block)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void CancelFetches(const std::vector<BlockStore::FetchId>& fetches);
  // One of the fetches, or the loop that starts them, has ended.
  void OneEnded() ABSL_LOCKS_EXCLUDED(mutex_);
  BlockStore& store_;
  const std::shared_ptr<const ServedArchive> archive_;
  const std::vector<BlockSlice> slices_;
  const BlockForm form_;
  Done done_;

  Mutex mutex_;
  std::vector<BlockPiece> pieces_ ABSL_GUARDED_BY(mutex_);
  // Empty until all have been started.
  std::vector<BlockStore::FetchId> fetches_ ABSL_GUARDED_BY(mutex_);
  size_t pending_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status first_error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_RANGE_READ_H_
