// SPDX-License-Identifier: GPL-3.0-or-later
//
// From a range of the logical space to the decoded blocks that cover it.
#ifndef QUIRE_SERVER_SERVICE_READ_RANGE_READ_H_
#define QUIRE_SERVER_SERVICE_READ_RANGE_READ_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/mutex.h"
#include "server/archive/archive.h"
#include "server/service/base/service_error.h"
#include "server/service/catalog/catalog.h"
#include "server/service/read/answer.h"
#include "server/storage/block_store.h"

namespace quire {

// The form in which blocks are fetched.
enum class BlockForm {
  kText,
  // As MakeStoredReader() says.
  kStored,
};

// The client that a read is for, and its class, for the scheduler.
struct Requester {
  FetchClass fetch_class = FetchClass::kInteractive;
  // As BlockFetch::client_id.
  uint64_t client_id = 0;
  // As BlockFetch::times.
  std::shared_ptr<FetchTimes> times = nullptr;
};

// The error of a block as RangeRead::Done has it; `more` is added to the
// metadata of a damaged one.
absl::Status ExplainBlockError(const ServedArchive& archive,
                               const absl::Status& status, BlockAddress block,
                               const ErrorMetadata& more = {});

class RangeRead;

// The fetches of several ranges, for the store to see at once: neighbouring
// blocks are then read together, where each alone would go to an idle device as
// soon as it came. Thread-compatible.
class FetchBundle {
 public:
  FetchBundle() = default;
  // Reads that were added and not started end with ResourceExhausted.
  ~FetchBundle();
  FetchBundle(const FetchBundle&) = delete;
  FetchBundle& operator=(const FetchBundle&) = delete;

  // Starts what was added since the last call; the callbacks of fetches that
  // end at once are called from here.
  // REQUIRES: is called after the last read was added: reads wait for it.
  void Start(BlockStore& store);

 private:
  friend class RangeRead;

  struct Part {
    std::shared_ptr<RangeRead> read;
    std::vector<BlockStore::FetchItem> fetches;
    // Set by Start(), which moves the fetches on.
    size_t fetch_count = 0;
  };

  void FailAll(const absl::Status& status);

  std::vector<Part> parts_;
};

// The slices of a range for RangeRead: those of blocks that are decoded in
// parts are divided at the parts' ends, unless the blocks are fetched as
// stored.
std::vector<BlockSlice> SplitAtParts(const ServedArchive& archive,
                                     std::vector<BlockSlice> slices,
                                     BlockForm form);

// Where the text of a slice that SplitAtParts() made is: in the part of a
// block, or in all of it.
struct PartPlace {
  uint32_t part = 0;
  // In the part's text, which has `size_bytes`.
  uint32_t offset = 0;
  uint32_t size_bytes = 0;
};

PartPlace PlaceInPart(const ServedArchive& archive, const BlockSlice& slice,
                      BlockForm form);

// Fetches all blocks of one range at once.
class RangeRead : public std::enable_shared_from_this<RangeRead> {
 public:
  // The thread that a read ends on.
  enum class EndedOn {
    // The one that started it, by StartMissing() or FetchBundle::Start().
    kStarter,
    // One of the decode pool; or any one, with an error, if it was cancelled.
    kDecodePool,
  };

  // The pieces in logical order, or the first error: DataLoss becomes
  // BLOCK_DAMAGED and names archive, segment and block; Unavailable becomes
  // DEVICE_FAILED, ResourceExhausted becomes SERVER_BUSY.
  using Done =
      std::function<void(absl::StatusOr<std::vector<BlockPiece>>, EndedOn)>;

  // `slices` are as SplitAtParts() makes them, here and in StartMissing().
  // Looks each block up in the cache. True if all of them are there: `pieces`
  // is then what a read would end with, in the form that the cache holds it in;
  // otherwise pieces of blocks that are not there have a null block.
  static bool FindCached(BlockStore& store, const ServedArchive& archive,
                         const std::vector<BlockSlice>& slices, BlockForm form,
                         FetchClass fetch_class,
                         std::vector<BlockPiece>& pieces);

  // Fetches the blocks of `pieces` that FindCached() has not found, which are
  // one or more. Calls `done` exactly once, perhaps before it returns, with
  // ResourceExhausted where memory for the fetches is lacking; not at all if
  // this throws std::bad_alloc.
  // With a `bundle`, fetches begin with its Start().
  // `store` must outlive the read.
  static std::shared_ptr<RangeRead> StartMissing(
      BlockStore& store, std::shared_ptr<const ServedArchive> archive,
      std::vector<BlockSlice> slices, BlockForm form,
      const Requester& requester, std::vector<BlockPiece> pieces, Done done,
      FetchBundle* bundle = nullptr);

  // Withdraws what has not reached the device; `done` gets Cancelled, perhaps
  // before this returns, unless it has had its call already.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class FetchBundle;

  // Of each slice the first one that is of the same part of the same block, and
  // is fetched for all of them. Empty where there is one slice for each.
  static std::vector<size_t> FirstSlices(const ServedArchive& archive,
                                         const std::vector<BlockSlice>& slices,
                                         BlockForm form);

  RangeRead(BlockStore& store, std::shared_ptr<const ServedArchive> archive,
            std::vector<BlockSlice> slices, BlockForm form, Done done);

  // What is fetched is a part of a block: whether to decode the others as well.
  bool TakesWholeBlock(const BlockFetch& fetch) const;
  BlockFetch FetchOf(const BlockSlice& slice, const Requester& requester) const;
  std::vector<BlockStore::FetchItem> Misses(const Requester& requester)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // What the store made of Misses().
  void Started(std::vector<BlockStore::FetchId> fetches)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // How much text of the slices lies before those of the block of `index` that
  // follow each other there, and how much they have.
  ErrorMetadata DamagedText(size_t index) const;
  void OnBlock(size_t index, absl::StatusOr<BlockPtr> block)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the read now, if it has not ended: its fetches were not all started.
  void Fail(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  void CancelFetches(const std::vector<BlockStore::FetchId>& fetches);
  // One of the fetches, or the start of them all, has ended.
  void OneEnded(EndedOn thread) ABSL_LOCKS_EXCLUDED(mutex_);

  BlockStore& store_;
  const std::shared_ptr<const ServedArchive> archive_;
  const std::vector<BlockSlice> slices_;
  const std::vector<size_t> first_slices_;
  const BlockForm form_;
  Done done_;

  Mutex mutex_;
  std::vector<BlockPiece> pieces_ ABSL_GUARDED_BY(mutex_);
  // Empty until all have been started, and once they are withdrawn.
  std::vector<BlockStore::FetchId> fetches_ ABSL_GUARDED_BY(mutex_);
  size_t pending_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  // done_ was called, or is being called.
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status first_error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_READ_RANGE_READ_H_
