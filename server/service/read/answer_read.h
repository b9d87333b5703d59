// SPDX-License-Identifier: GPL-3.0-or-later
//
// From a plan to the bytes of its answer.
#ifndef QUIRE_SERVER_SERVICE_READ_ANSWER_READ_H_
#define QUIRE_SERVER_SERVICE_READ_ANSWER_READ_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/mutex.h"
#include "server/service/base/service_error.h"
#include "server/service/catalog/catalog.h"
#include "server/service/read/answer.h"
#include "server/service/read/answer_plan.h"
#include "server/storage/block_store.h"

namespace quire {

// The client that a read is for, and its class, for the scheduler.
struct Requester {
  FetchClass fetch_class = FetchClass::kInteractive;
  // As BlockFetch::client_id.
  uint64_t client_id = 0;
  // As BlockFetch::times.
  std::shared_ptr<FetchTimes> times = nullptr;
};

class AnswerRead;

// The fetches of several answers, for the store to see at once: neighbouring
// blocks are then read together, where each alone would go to an idle device as
// soon as it came. Thread-compatible.
class FetchBundle {
 public:
  // Starts what was added since the last call; fetches that end at once call
  // back from here.
  // REQUIRES: is called after the last read was added: reads wait for it.
  void Start(BlockStore& store);

 private:
  friend class AnswerRead;

  struct Part {
    std::shared_ptr<AnswerRead> read;
    size_t fetch_count = 0;
  };

  std::vector<Part> parts_;
  std::vector<BlockStore::FetchItem> fetches_;
};

// The fetches of one answer, all at once, and then its encoding. Thread-safe.
class AnswerRead : public std::enable_shared_from_this<AnswerRead> {
 public:
  // Errors: DataLoss           BLOCK_DAMAGED: names archive, segment, block and
  //                            how much text lies before the damage and in it
  //         Unavailable        DEVICE_FAILED
  //         ResourceExhausted  SERVER_BUSY: the store's queue is full
  //         Cancelled          CALL_CANCELLED
  using Done = std::function<void(absl::StatusOr<Answer>)>;

  // Reads what `plan` names and makes the answer of it. Encoding that takes
  // longer than a tenth of a millisecond runs on the decode pool; the rest on
  // the thread that the read ends on, which is the calling one if all blocks
  // are cached. `done` is called exactly once, perhaps before this returns;
  // null is returned if it was. With a `bundle`, fetches begin with its
  // Start(). `store` must outlive the read.
  static std::shared_ptr<AnswerRead> Start(
      BlockStore& store, const std::shared_ptr<const ServedArchive>& archive,
      AnswerPlan plan, const Requester& requester, Done done,
      FetchBundle* bundle = nullptr);

  // Withdraws what has not reached the device; `done` gets Cancelled, perhaps
  // before this returns, unless it has had its call already.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class FetchBundle;

  AnswerRead(BlockStore& store, std::shared_ptr<const ServedArchive> archive,
             AnswerPlan plan, Done done)
      : store_(store),
        archive_(std::move(archive)),
        plan_(std::move(plan)),
        done_(std::move(done)) {}

  // Appends the fetches of pieces that have no block.
  void AddMisses(const Requester& requester,
                 std::vector<BlockStore::FetchItem>& fetches);
  BlockFetch FetchOf(const PlannedSlice& slice,
                     const Requester& requester) const;
  // True if the other parts of the block are to be decoded as well.
  bool TakesWholeBlock(const BlockFetch& fetch) const;

  // All fetches are with the store, which named them so.
  void Started(std::vector<BlockStore::FetchId> fetches)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnBlock(size_t index, const absl::StatusOr<BlockPtr>& block)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // One of the fetches, or the start of them all, has ended.
  void OneEnded(bool is_starter) ABSL_LOCKS_EXCLUDED(mutex_);
  void Encode();
  // Text of the plan before that of a damaged block, and in it.
  ErrorMetadata DamagedText(size_t index) const;
  void CancelFetches(const std::vector<BlockStore::FetchId>& fetches);

  BlockStore& store_;
  const std::shared_ptr<const ServedArchive> archive_;
  const AnswerPlan plan_;
  Done done_;
  // One for each slice. Each belongs to the fetch of its part until that ends;
  // all to whichever is the last to end.
  std::vector<BlockPiece> pieces_;
  std::shared_ptr<MadeBytes> copies_;
  // One more for the start: fetches that end while others are being started do
  // not end the read.
  std::atomic<size_t> pending_count_{1};

  Mutex mutex_;
  // Empty until all have been started, and once they are withdrawn.
  std::vector<BlockStore::FetchId> fetches_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status first_error_ ABSL_GUARDED_BY(mutex_);
};

// Costs of reading a block in partitions. A time of 0 is not known yet.
struct PartCosts {
  // One read of the drive.
  std::chrono::nanoseconds read_time{0};
  // Decoding 1 MiB of text in partitions, by one thread.
  std::chrono::nanoseconds decode_time_per_mib{0};
};

// Number of cached partitions in a row, just before the one that a read asks
// for, from which on the whole block is decoded: the client reads on through
// the block, and by then its reads have cost as much as decoding the block
// does. Such a rule, to buy once the rent has come to the price, needs no guess
// of how far the client reads: it costs at most three times what is possible
// with that knowledge, while single partitions alone may cost as many times as
// much as a block has partitions. (Karlin et al., "Competitive snoopy caching",
// Algorithmica 1988, section 1.)
// UINT32_MAX: never.
uint32_t PartsBeforeWhole(uint64_t block_size_bytes, const PartCosts& costs);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_READ_ANSWER_READ_H_
