// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/batch_call.h"

#include <algorithm>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/service/answer_bytes.h"
#include "server/service/answer_read.h"
#include "server/service/batch_item.h"
#include "server/service/batch_memory.h"
#include "server/service/pinned_blocks.h"
#include "server/service/read_planner.h"
#include "server/service/serial_call.h"
#include "server/service/service_error.h"

namespace quire {
namespace {

// A message of answers is closed when it has this much text or this many
// answers: enough that the cost of a message no longer shows.
constexpr uint64_t kMessageTextSizeBytes = 512 << 10;
constexpr size_t kMessageResultsMax = 1024;

// Ranges whose blocks are asked for at once: some hundred blocks at most.
constexpr size_t kFetchesAtOnceMax = 256;

// Items that are fetched or ready. Where hundreds of them lie in one block,
// what is kept about them takes more memory than the block.
constexpr size_t kActiveItemsMax = 4096;

struct WaitingItem {
  uint64_t tag = 0;
  ResolvedTarget target;
};

class BatchCall
    : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
      private SerialCall {
 public:
  BatchCall(ServiceCore& core, grpc::CallbackServerContext& context)
      : core_(core),
        asker_{FetchClass::kBatch, ClientIdOf(context.peer())},
        booking_(core, Method::kBatchRead, context),
        memory_(core.admission, context.peer()) {}

  void Start() {
    absl::Status status = RefuseIfDraining(core_);
    Update([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      ended_with_ = std::move(status);
    });
  }

  void OnReadDone(bool ok) override {
    std::vector<WaitingItem> waiting;
    std::list<BatchAnswer> refused;
    absl::Status status = ok ? TakeMessage(waiting, refused) : absl::OkStatus();
    Update([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      reading_ = false;
      all_received_ |= !ok;
      End(std::move(status));
      End(memory_.Arrive(ArrivalOf(waiting, refused.size()),
                         core_.stream_window_size_bytes));
      for (const WaitingItem& item : waiting) {
        waiting_.emplace(item.target.range.offset.value, item);
      }
      ready_.splice(ready_.end(), refused);
    });
  }

  void OnWriteDone(bool ok) override {
    booking_.ClientTookIt();
    // Or the blocks would stay until the next message.
    response_.Clear();
    const uint64_t freed_bytes = LetGoOfSent();
    Update([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      writing_ = false;
      memory_.Sent(std::exchange(writing_count_, 0), freed_bytes);
      if (!ok) {
        End(absl::CancelledError());
      }
    });
  }

  void OnCancel() override {
    Update([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      End(absl::CancelledError());
    });
  }

  void OnDone() override { delete this; }

 private:
  // What the items of a message that has been read will take.
  BatchMemory::Arrival ArrivalOf(const std::vector<WaitingItem>& waiting,
                                 size_t refused_count) const {
    BatchMemory::Arrival arrival{.count = waiting.size() + refused_count};
    if (arrival.count > 0) {
      arrival.largest_bytes = BlockAnswerMemoryBytes(*archive_, encoding_);
    }
    for (const WaitingItem& item : waiting) {
      const uint64_t size_bytes = AnswerMemoryBytesMax(
          *archive_, item.target.range.size_bytes, encoding_);
      arrival.all_bytes += size_bytes;
      arrival.largest_bytes = std::max(arrival.largest_bytes, size_bytes);
    }
    return arrival;
  }

  // Returns what the message that was written took of the window; what it held
  // is gone before it counts as free.
  uint64_t LetGoOfSent() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::vector<BlockStore::BlockPtr> freed;
    MutexLock lock(&mutex_);
    const uint64_t size_bytes = std::exchange(writing_own_bytes_, 0) +
                                pinned_.Unpin(writing_blocks_, freed);
    writing_blocks_.clear();
    return size_bytes;
  }

  // The first error counts.
  void End(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (ended_with_.ok()) {
      ended_with_ = std::move(status);
    }
  }

  // Splits the message just read into items to be fetched and items that have
  // their answer already, an error.
  // Errors: those of the whole stream.
  absl::Status TakeMessage(std::vector<WaitingItem>& waiting,
                           std::list<BatchAnswer>& refused) {
    v1::BatchReadRequest request;
    QUIRE_RETURN_IF_ERROR(ParseRequest(request_, request));
    request_.Clear();
    if (archive_ == nullptr) {
      QUIRE_ASSIGN_OR_RETURN(archive_, core_.catalog.Find(request.archive()));
      encoding_ = ChooseEncoding(request.accepted_encodings(), *archive_);
      shares_blocks_ = AnswersAreBlocks(*archive_, encoding_);
    } else if (request.has_archive() && request.archive() != archive_->name) {
      return ServiceError(
          absl::StatusCode::kInvalidArgument, v1::MALFORMED_REQUEST,
          "archive: a stream reads one archive; open another stream");
    }
    const auto item_count = static_cast<uint64_t>(request.items_size());
    if (item_count > core_.limits.batch_message_items_max()) {
      return ServiceError(absl::StatusCode::kInvalidArgument,
                          v1::LIMIT_EXCEEDED,
                          absl::StrCat("items: a message has ", item_count,
                                       " items, over batch_message_items_max, ",
                                       core_.limits.batch_message_items_max(),
                                       "; spread them over several messages"),
                          {{"limit", "batch_message_items_max"}});
    }
    core_.metrics.BatchMessage(item_count);
    for (const v1::BatchItem& item : request.items()) {
      absl::StatusOr<ResolvedTarget> target =
          ResolveBatchItem(core_, *archive_, encoding_, item);
      if (target.ok()) {
        waiting.push_back({item.tag(), *std::move(target)});
      } else {
        refused.push_back({.tag = item.tag(), .outcome = target.status()});
      }
    }
    return absl::OkStatus();
  }

  bool Act() override {
    while (StartNextFetches()) {
    }
    StartWriteIfReady();
    StartReadIfWanted();
    return CancelFetchesIfEnded();
  }

  // As many as there is room for in the window, so that neighbouring blocks are
  // read together; False if all that can be is under way.
  bool StartNextFetches() ABSL_LOCKS_EXCLUDED(mutex_) {
    FetchBundle bundle;
    size_t count = 0;
    while (count < kFetchesAtOnceMax && StartNextFetch(bundle)) {
      ++count;
    }
    bundle.Start(core_.store);
    return count == kFetchesAtOnceMax;
  }

  // False if there is nothing to fetch or no room in the window.
  bool StartNextFetch(FetchBundle& bundle) ABSL_LOCKS_EXCLUDED(mutex_) {
    std::list<BatchAnswer>::iterator active;
    std::vector<BlockSlice> slices;
    {
      MutexLock lock(&mutex_);
      if (!ended_with_.ok() || waiting_.empty() ||
          fetching_.size() + ready_.size() >= kActiveItemsMax) {
        return false;
      }
      auto next = waiting_.lower_bound(sweep_offset_);
      if (next == waiting_.end()) {
        next = waiting_.begin();
      }
      slices = PlanBlocks(*archive_->archive, next->second.target.range);
      const uint64_t own_bytes =
          shares_blocks_ ? 0 : AnswerMemoryBytes(*archive_, slices, encoding_);
      const uint64_t taken_bytes =
          shares_blocks_ ? pinned_.NewBytes(slices, block_size_) : own_bytes;
      StreamWindow& window = memory_.window();
      if (!window.is_in_use()) {
        End(window.Raise(taken_bytes));
      }
      if (!ended_with_.ok() || !window.TryTake(taken_bytes)) {
        return false;
      }
      sweep_offset_ = next->first;
      fetching_.push_back({.tag = next->second.tag,
                           .target = next->second.target,
                           .own_bytes = own_bytes,
                           .blocks = PinBlocks(slices),
                           .read = nullptr,
                           .outcome = Answer()});
      active = std::prev(fetching_.end());
      waiting_.erase(next);
    }
    std::shared_ptr<RangeRead> read = StartAnswer(
        core_.store, archive_, std::move(slices), encoding_, asker_,
        [this, active](absl::StatusOr<Answer> outcome) {
          Update([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
            if (outcome.ok()) {
              pinned_.Share(active->blocks, outcome->pieces);
            }
            active->outcome = std::move(outcome);
            ready_.splice(ready_.end(), fetching_, active);
          });
        },
        &bundle);
    if (read != nullptr) {
      MutexLock lock(&mutex_);
      // It may be in ready_ by now, but only this thread takes it from there.
      active->read = std::move(read);
    }
    return true;
  }

  // None if they are no part of the answer.
  absl::InlinedVector<BlockAddress, 2> PinBlocks(
      const std::vector<BlockSlice>& slices)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    absl::InlinedVector<BlockAddress, 2> blocks;
    if (shares_blocks_) {
      pinned_.Pin(slices, block_size_);
      for (const BlockSlice& slice : slices) {
        blocks.push_back(slice.block);
      }
    }
    return blocks;
  }

  void StartWriteIfReady() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::list<BatchAnswer> items;
    {
      MutexLock lock(&mutex_);
      if (writing_ || !ended_with_.ok() || ready_.empty()) {
        return;
      }
      uint64_t text_size_bytes = 0;
      while (!ready_.empty() && items.size() < kMessageResultsMax &&
             text_size_bytes < kMessageTextSizeBytes) {
        const BatchAnswer& item = ready_.front();
        text_size_bytes += item.target.range.size_bytes;
        writing_own_bytes_ += item.own_bytes;
        writing_blocks_.insert(writing_blocks_.end(), item.blocks.begin(),
                               item.blocks.end());
        items.splice(items.end(), ready_, ready_.begin());
      }
      writing_count_ = items.size();
      writing_ = true;
    }
    AnswerBytes answer;
    TallyByEncoding tallies;
    for (const BatchAnswer& item : items) {
      AppendResult(*archive_, item, answer, tallies);
    }
    for (size_t i = 0; i < tallies.size(); ++i) {
      if (tallies[i].answer_count > 0) {
        booking_.SendingAnswers(static_cast<v1::WireEncoding>(i), tallies[i]);
      }
    }
    response_ = answer.Take();
    booking_.WaitForClient();
    StartWrite(&response_);
  }

  // Reads the next message if all of its items would find room.
  void StartReadIfWanted() ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      MutexLock lock(&mutex_);
      const uint64_t message_items_max = core_.limits.batch_message_items_max();
      if (reading_ || all_received_ || !ended_with_.ok() ||
          memory_.unanswered_count() + message_items_max >
              core_.limits.batch_pending_items_max() ||
          !memory_.TryReserve(message_items_max)) {
        return;
      }
      reading_ = true;
    }
    StartRead(&request_);
  }

  // True if nothing is under way any more and the call can be finished.
  bool CancelFetchesIfEnded() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::vector<std::shared_ptr<RangeRead>> reads;
    {
      MutexLock lock(&mutex_);
      if (ended_with_.ok()) {
        return all_received_ && memory_.unanswered_count() == 0;
      }
      if (fetching_.empty()) {
        return !writing_;
      }
      for (const BatchAnswer& item : fetching_) {
        if (item.read != nullptr) {
          reads.push_back(item.read);
        }
      }
    }
    for (const std::shared_ptr<RangeRead>& read : reads) {
      read->Cancel();
    }
    return false;
  }

  void FinishCall() override {
    absl::Status status;
    {
      MutexLock lock(&mutex_);
      status = ended_with_;
    }
    const grpc::Status outgoing = ToGrpcStatus(status);
    booking_.Ended(outgoing.error_code());
    booking_.WaitForClient();
    Finish(outgoing);
  }

  ServiceCore& core_;
  const Asker asker_;
  CallBooking booking_;
  // Messages being read and written; touched by gRPC while `reading_` or
  // `writing_`.
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
  // Set by the first message; read by whoever acts afterwards.
  std::shared_ptr<const ServedArchive> archive_;
  v1::WireEncoding encoding_ = v1::WIRE_ENCODING_IDENTITY;
  bool shares_blocks_ = false;
  const std::function<uint64_t(BlockAddress)> block_size_ =
      [this](BlockAddress block) {
        return BlockMemoryBytes(*archive_, block, encoding_);
      };
  // Held until gRPC has let go of the last answer. Its items without an answer
  // are waiting, fetching, ready, or in the message being written.
  BatchMemory memory_ ABSL_GUARDED_BY(mutex_);
  PinnedBlocks pinned_ ABSL_GUARDED_BY(mutex_);
  // Not OK: nothing more is begun.
  absl::Status ended_with_ ABSL_GUARDED_BY(mutex_);
  // By logical offset.
  absl::btree_multimap<uint64_t, WaitingItem> waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t sweep_offset_ ABSL_GUARDED_BY(mutex_) = 0;
  std::list<BatchAnswer> fetching_ ABSL_GUARDED_BY(mutex_);
  std::list<BatchAnswer> ready_ ABSL_GUARDED_BY(mutex_);
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool all_received_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t writing_own_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<BlockAddress> writing_blocks_ ABSL_GUARDED_BY(mutex_);
  uint64_t writing_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StartBatchCall(
    ServiceCore& core, grpc::CallbackServerContext& context) {
  auto* call = new BatchCall(core, context);
  call->Start();
  return call;
}

}  // namespace quire
