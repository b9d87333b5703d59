// SPDX-License-Identifier: GPL-3.0-or-later
//
// Reads the blocks of a plan and encodes its answer.
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

// Client and class of a read, for the scheduler.
struct Requester {
  FetchClass fetch_class = FetchClass::kInteractive;
  // See BlockFetch::client_id.
  uint64_t client_id = 0;
  // See BlockFetch::times.
  std::shared_ptr<FetchTimes> times = nullptr;
};

class AnswerRead;

// The fetches of several answers, handed to the store together. The store then
// reads neighbouring blocks together; single fetches would reach an idle device
// one by one. Thread-compatible.
class FetchBundle {
 public:
  // Starts the fetches added since the last call. Fetches that end at once call
  // back from here.
  // REQUIRES: called after the last read was added, as reads wait for it.
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

// The fetches of one answer, started together, and its encoding. Thread-safe.
class AnswerRead : public std::enable_shared_from_this<AnswerRead> {
 public:
  // Errors: DataLoss           BLOCK_DAMAGED: names archive, segment and block,
  //                            and the sizes of the text before and in the
  //                            damage
  //         Unavailable        DEVICE_FAILED
  //         ResourceExhausted  SERVER_BUSY: the store's queue is full
  //         Cancelled          CALL_CANCELLED
  using Done = std::function<void(absl::StatusOr<Answer>)>;

  // Reads the blocks of `plan` and encodes the answer. Encoding that takes more
  // than a tenth of a millisecond runs on the decode pool. Shorter work runs on
  // the thread that ends the read: the calling one if all blocks are cached.
  // `done` is called exactly once; returns null if that was before the return.
  // With a `bundle`, fetches begin with its Start(). `store` must outlive the
  // read.
  static std::shared_ptr<AnswerRead> Start(
      BlockStore& store, const std::shared_ptr<const ServedArchive>& archive,
      AnswerPlan plan, const Requester& requester, Done done,
      FetchBundle* bundle = nullptr);

  // Withdraws the fetches that have not reached the device. `done` gets
  // Cancelled, perhaps before this returns, unless it was called already.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class FetchBundle;

  AnswerRead(BlockStore& store, std::shared_ptr<const ServedArchive> archive,
             AnswerPlan plan, uint64_t client_id, Done done)
      : store_(store),
        archive_(std::move(archive)),
        plan_(std::move(plan)),
        client_id_(client_id),
        done_(std::move(done)) {}

  // Appends the fetches of pieces without a block.
  void AddMisses(const Requester& requester,
                 std::vector<BlockStore::FetchItem>& fetches);
  BlockFetch FetchOf(const PlannedSlice& slice,
                     const Requester& requester) const;
  // True if the other parts of the block should be decoded as well.
  bool TakesWholeBlock(const BlockFetch& fetch) const;

  // Called when the store has all fetches, with their ids.
  void Started(std::vector<BlockStore::FetchId> fetches)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnBlock(size_t index, const absl::StatusOr<BlockPtr>& block)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Called when a fetch, or the start of all fetches, has ended.
  void OneEnded(bool is_starter) ABSL_LOCKS_EXCLUDED(mutex_);
  void Encode();
  // Returns the sizes of the plan's text before a damaged block and in it.
  ErrorMetadata DamagedText(size_t index) const;
  void CancelFetches(const std::vector<BlockStore::FetchId>& fetches);

  BlockStore& store_;
  const std::shared_ptr<const ServedArchive> archive_;
  const AnswerPlan plan_;
  // See BlockFetch::client_id.
  const uint64_t client_id_;
  Done done_;
  // One for each slice. Each belongs to the fetch of its part until that ends,
  // then all to the last fetch to end.
  std::vector<BlockPiece> pieces_;
  std::shared_ptr<MadeBytes> copies_;
  // Includes one for the start, so that fetches which end during the start do
  // not end the read.
  std::atomic<size_t> pending_count_{1};

  Mutex mutex_;
  // Empty until all have started, and after they are withdrawn.
  std::vector<BlockStore::FetchId> fetches_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status first_error_ ABSL_GUARDED_BY(mutex_);
};

// Costs of reading a block in partitions; 0 is unknown.
struct PartCosts {
  // One read of the drive.
  std::chrono::nanoseconds read_time{0};
  // Decoding 1 MiB of text in partitions, by one thread.
  std::chrono::nanoseconds decode_time_per_mib{0};
};

// Returns how many consecutive cached partitions must precede the requested one
// for the whole block to be decoded. The client is then reading through the
// block, and its reads have cost as much as decoding the block. This is the ski
// rental rule, which needs no estimate of how far the client reads. It costs at
// most three times the optimum, while single partitions may cost as many times
// the optimum as a block has partitions. (Karlin et al., "Competitive snoopy
// caching", Algorithmica 1988, section 1.)
// UINT32_MAX: never.
uint32_t PartsBeforeWhole(uint64_t block_size_bytes, const PartCosts& costs);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_READ_ANSWER_READ_H_
