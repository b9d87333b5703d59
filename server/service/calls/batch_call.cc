// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/arena.h"

#include "codecs/base/memory/free_memory.h"
#include "codecs/base/status_macros.h"
#include "server/service/base/service_error.h"
#include "server/service/calls/batch_item.h"
#include "server/service/calls/methods.h"
#include "server/service/calls/reading_stream.h"
#include "server/service/calls/request_parser.h"
#include "server/service/calls/waiting_items.h"
#include "server/service/limits/batch_memory.h"
#include "server/service/read/answer_bytes.h"
#include "server/service/read/answer_plan.h"
#include "server/service/read/answer_read.h"
#include "server/service/read/pinned_blocks.h"
#include "server/service/read/read_planner.h"

namespace quire {
namespace {

// A message of answers is closed at this many bytes, including descriptions, or
// at this many answers. The cost of a message is negligible then.
constexpr uint64_t kMessageClosingSizeBytes = 512 << 10;
constexpr size_t kMessageResultsMax = 1024;
// Default limit of gRPC's clients. Only a single larger answer makes a larger
// message.
constexpr uint64_t kMessageSizeBytesMax = 4 << 20;

// Ranges fetched together: some hundred blocks at most.
constexpr size_t kFetchesAtOnceMax = 256;

// Items that are fetched or ready. If hundreds of them lie in one block, their
// records take more memory than the block.
constexpr size_t kActiveItemsMax = 4096;

// Unused records that a call keeps, about 100 KB, which are not charged.
constexpr size_t kSpareItemsMax = kFetchesAtOnceMax;

// Items of one message.
struct Arrived {
  // Archive of the items, and its state.
  std::optional<ServedContents> contents;
  std::vector<WaitingItem> waiting;
  // Items already answered with an error.
  std::list<BatchAnswer> refused;
};

class BatchCall
    : public ReadingStream<
          grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>> {
 public:
  BatchCall(ServiceCore& core, grpc::CallbackServerContext& context)
      : ReadingStream(core, Method::kBatchRead, context),
        requester_{FetchClass::kBatch, ClientIdOf(booking_.Client()),
                   booking_.fetch_times()},
        memory_(core.admission, booking_.Client()) {}

  void Start() {
    Update([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      End(RefuseIfDraining(core_));
      End(booking_.access().status());
    });
  }

  void OnReadDone(bool ok) override {
    Arrived arrived;
    absl::Status status = ok ? TakeMessage(arrived) : absl::OkStatus();
    Update([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      reading_ = false;
      all_received_ |= !ok;
      End(booking_.CheckAgain());
      End(std::move(status));
      const BatchMemory::Arrival arrival = ArrivalOf(arrived);
      End(memory_.Arrive(arrival, core_.stream_window_size_bytes));
      if (arrival.count.items > 0) {
        contents_ = std::move(arrived.contents);
        contents_->FreeWithdrawal();
      }
      for (const WaitingItem& item : arrived.waiting) {
        waiting_.Push(item);
      }
      ready_.splice(ready_.end(), arrived.refused);
    });
  }

  void OnWriteDone(bool ok) override {
    booking_.ClientTookIt();
    // Otherwise the blocks would stay until the next message.
    response_.Clear();
    const uint64_t freed_bytes = ReleaseSent();
    // Destroyed after the lock is released: this may be the last owner.
    std::optional<ServedContents> unused_contents;
    std::list<BatchAnswer> unused_spare;
    Update([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      writing_ = false;
      memory_.Sent(std::exchange(writing_count_, {}), freed_bytes);
      if (memory_.unanswered_count() == 0) {
        unused_contents.swap(contents_);
        unused_spare.swap(spare_);
      }
      End(ok ? absl::OkStatus() : absl::CancelledError());
      End(booking_.CheckAgain());
    });
  }

 private:
  // Returns what the items of a received message will take.
  BatchMemory::Arrival ArrivalOf(const Arrived& arrived) const {
    BatchMemory::Arrival arrival{
        .count = {.items = arrived.waiting.size() + arrived.refused.size(),
                  .refused = arrived.refused.size()}};
    if (arrival.count.items > 0) {
      arrival.largest_bytes =
          BlockAnswerBytesMax(*arrived.contents->archive, encoding_) +
          kAnswerFramingSizeBytesMax + BatchMemory::kActiveItemBytes;
    }
    for (const WaitingItem& item : arrived.waiting) {
      arrival.all_bytes += item.answer_bytes_max;
      arrival.largest_bytes =
          std::max(arrival.largest_bytes, item.answer_bytes_max);
    }
    return arrival;
  }

  // Releases the resources of the written message. Returns its part of the
  // window, which counts as free only afterwards.
  uint64_t ReleaseSent() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::vector<BlockStore::BlockPtr> freed;
    MutexLock lock(&mutex_);
    const uint64_t size_bytes = std::exchange(writing_own_bytes_, 0) +
                                pinned_.Unpin(writing_blocks_, freed);
    writing_blocks_.clear();
    return size_bytes;
  }

  // Returns the archive of the received message: that of the unanswered items,
  // or else the one now served under the name. The state is that of the stream.
  absl::StatusOr<ServedContents> FindArchive(
      const v1::BatchReadRequest& request) ABSL_LOCKS_EXCLUDED(mutex_) {
    const bool is_first = name_.empty();
    if (!is_first && request.has_archive() && request.archive() != name_) {
      return ServiceError(
          absl::StatusCode::kInvalidArgument, v1::MALFORMED_REQUEST,
          "archive: a stream reads one archive; open another stream");
    }
    if (!is_first && request.has_archive_uuid() &&
        request.archive_uuid() != uuid_) {
      return ServiceError(absl::StatusCode::kInvalidArgument,
                          v1::MALFORMED_REQUEST,
                          "archive_uuid: must be that of the stream's first "
                          "message, or unset; open another stream");
    }
    {
      MutexLock lock(&mutex_);
      if (contents_.has_value()) {
        ServedContents contents = *contents_;
        contents.TakeWithdrawal();
        return contents;
      }
    }
    if (is_first) {
      QUIRE_ASSIGN_OR_RETURN(ServedContents contents,
                             booking_.access().FindContents(request));
      const ServedArchive& archive = *contents.archive;
      name_ = archive.name;
      state_uuid_ = std::string(contents.view.uuid);
      table_hash_ = archive.description.symbol_table_hash();
      if (request.has_archive_uuid()) {
        uuid_ = request.archive_uuid();
      }
      encoding_ = ChooseEncoding(request.accepted_encodings(), contents);
      return contents;
    }
    QUIRE_ASSIGN_OR_RETURN(std::shared_ptr<const ServedArchive> archive,
                           booking_.access().FindToRead(name_));
    const std::optional<ArchiveView> view =
        archive->archive->FindState(state_uuid_);
    if (!view.has_value() ||
        archive->description.symbol_table_hash() != table_hash_) {
      if (uuid_.has_value()) {
        QUIRE_RETURN_IF_ERROR(
            FindState(*archive->archive, name_, *uuid_, "archive_uuid")
                .status());
      }
      return ServiceError(
          absl::StatusCode::kUnavailable, v1::ARCHIVE_REPLACED,
          absl::StrCat("archive \"", name_,
                       "\" was replaced by other contents ",
                       "since this stream's last answer; open another stream"),
          {{"archive", name_}});
    }
    ServedContents contents(std::move(archive));
    contents.view = *view;
    return contents;
  }

  // Splits the received message into items to be fetched and refused items.
  // Errors: those of the whole stream.
  absl::Status TakeMessage(Arrived& arrived) ABSL_LOCKS_EXCLUDED(mutex_) {
    // One allocation for many items.
    google::protobuf::Arena arena;
    auto& request =
        *google::protobuf::Arena::CreateMessage<v1::BatchReadRequest>(&arena);
    QUIRE_RETURN_IF_ERROR(ParseBatchRequest(
        request_, core_.limits.batch_message_items_max(), request));
    request_.Clear();
    QUIRE_ASSIGN_OR_RETURN(arrived.contents, FindArchive(request));
    core_.metrics.BatchMessage(static_cast<uint64_t>(request.items_size()));
    arrived.waiting.reserve(static_cast<size_t>(request.items_size()));
    for (const v1::BatchItem& item : request.items()) {
      absl::StatusOr<WaitingItem> waiting =
          ResolveBatchItem(core_, *arrived.contents, encoding_, item);
      if (waiting.ok()) {
        arrived.waiting.push_back(*std::move(waiting));
      } else {
        arrived.refused.push_back(
            {.tag = item.tag(),
             .refusal = ToItemStatus(waiting.status()).SerializeAsString()});
      }
    }
    return absl::OkStatus();
  }

  bool Act() override {
    while (StartNextFetches()) {
    }
    StartWriteIfReady();
    StartReadIfWanted();
    return CancelReadsIfEnded();
  }

  std::optional<ServedContents> CurrentContents() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return contents_;
  }

  // Starts as many fetches as the window has memory for, so that neighbouring
  // blocks are read together. Returns false if no more can start now.
  bool StartNextFetches() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::optional<ServedContents> contents = CurrentContents();
    if (!contents.has_value()) {
      return false;
    }
    FetchBundle bundle;
    size_t count = 0;
    while (count < kFetchesAtOnceMax && PlanNext(*contents) &&
           StartNextFetch(contents->archive, bundle)) {
      ++count;
    }
    bundle.Start(core_.store);
    return count == kFetchesAtOnceMax;
  }

  // Takes the next item out of the sweep and plans it by what is withdrawn now,
  // unless one is planned. Returns false if there is none to fetch.
  bool PlanNext(ServedContents& contents) ABSL_LOCKS_EXCLUDED(mutex_) {
    if (!next_.empty()) {
      return true;
    }
    WaitingItem waiting;
    {
      MutexLock lock(&mutex_);
      if (!ended_with_.ok() || waiting_.empty()) {
        return false;
      }
      waiting = waiting_.Pop();
      next_.splice(next_.end(), spare_, spare_.begin(),
                   spare_.empty() ? spare_.end() : std::next(spare_.begin()));
    }
    if (next_.empty()) {
      next_.emplace_back();
    }
    BatchAnswer& item = next_.front();
    item.tag = waiting.tag;
    item.target = waiting.target;
    item.generation = waiting.generation;
    if (item.target.document.has_value()) {
      item.description =
          DescribeDocument(*contents.view.archive, *item.target.document);
    }
    contents.TakeWithdrawal();
    next_plan_ = PlanAnswer(contents, item.target.range, encoding_);
    // A withdrawal changes the encoding, and so the form of the blocks: those
    // of earlier items cannot be shared.
    next_plan_.is_shareable &= next_plan_.encoding == encoding_;
    item.own_bytes = BatchMemory::kActiveItemBytes +
                     kAnswerFramingSizeBytesMax + item.description.size() +
                     next_plan_.own_bytes + next_plan_.serialised_bytes +
                     (next_plan_.is_shareable ? 0 : next_plan_.block_bytes);
    return true;
  }

  // Fetches the item that PlanNext() planned. Returns false if the window is
  // full.
  bool StartNextFetch(const std::shared_ptr<const ServedArchive>& archive,
                      FetchBundle& bundle) ABSL_LOCKS_EXCLUDED(mutex_) {
    std::list<BatchAnswer>::iterator active;
    {
      MutexLock lock(&mutex_);
      if (!ended_with_.ok() ||
          fetching_.size() + ready_.size() >= kActiveItemsMax) {
        return false;
      }
      const AnswerPlan& plan = next_plan_;
      const uint64_t taken_bytes =
          next_.front().own_bytes +
          (plan.is_shareable ? pinned_.NewBytes(plan.slices) : 0);
      StreamWindow& window = memory_.window();
      if (!window.is_in_use()) {
        End(window.Raise(taken_bytes));
      }
      if (!ended_with_.ok() || !window.TryTake(taken_bytes)) {
        return false;
      }
      if (plan.is_shareable) {
        pinned_.Pin(plan.slices);
        for (const PlannedSlice& slice : plan.slices) {
          next_.front().blocks.push_back(slice.block);
        }
      }
      active = next_.begin();
      fetching_.splice(fetching_.end(), next_);
    }
    std::shared_ptr<AnswerRead> read = AnswerRead::Start(
        core_.store, archive, std::exchange(next_plan_, {}), requester_,
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
      // The item may be in ready_ by now, but only this thread removes it.
      active->read = std::move(read);
    }
    return true;
  }

  void StartWriteIfReady() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::list<BatchAnswer> items;
    std::shared_ptr<const ServedArchive> archive;
    {
      MutexLock lock(&mutex_);
      if (writing_ || !ended_with_.ok() || ready_.empty()) {
        return;
      }
      archive = contents_->archive;
      uint64_t message_size_bytes = 0;
      while (!ready_.empty() && items.size() < kMessageResultsMax &&
             message_size_bytes < kMessageClosingSizeBytes) {
        const BatchAnswer& item = ready_.front();
        message_size_bytes += ResultSizeBytesMax(item);
        if (!items.empty() && message_size_bytes > kMessageSizeBytesMax) {
          break;
        }
        writing_own_bytes_ += item.own_bytes;
        writing_count_.refused += item.refusal.empty() ? 0 : 1;
        writing_blocks_.insert(writing_blocks_.end(), item.blocks.begin(),
                               item.blocks.end());
        items.splice(items.end(), ready_, ready_.begin());
      }
      writing_count_.items = items.size();
    }
    AnswerBytes answer;
    TallyByEncoding tallies;
    v1::BatchResult head;
    for (BatchAnswer& item : items) {
      RefuseIfWithdrawn(*archive, item);
      AppendResult(item, head, answer, tallies);
    }
    for (size_t i = 0; i < tallies.size(); ++i) {
      if (tallies[i].answer_count > 0) {
        booking_.SendingAnswers(static_cast<v1::WireEncoding>(i), tallies[i]);
      }
    }
    response_ = answer.Take();
    for (BatchAnswer& item : items) {
      // The assignment would keep their memory.
      FreeMemory(item.description);
      FreeMemory(item.refusal);
      item = BatchAnswer();
    }
    {
      MutexLock lock(&mutex_);
      while (!items.empty() && spare_.size() < kSpareItemsMax) {
        spare_.splice(spare_.end(), items, items.begin());
      }
    }
    BeginWriting();
    StartWrite(&response_);
  }

  // Reads the next message if all of its items would fit.
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

  bool IsComplete() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return all_received_ && memory_.unanswered_count() == 0;
  }

  bool IsFetching() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !fetching_.empty();
  }

  Reads ActiveReads() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Reads reads;
    for (const BatchAnswer& item : fetching_) {
      if (item.read != nullptr) {
        reads.push_back(item.read);
      }
    }
    return reads;
  }

  const Requester requester_;
  // Messages being read and written. gRPC uses them while `reading_` or
  // `writing_`.
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
  // Set by the first message.
  std::string name_;
  std::string state_uuid_;
  // Table of the stream's encoding, which must not change. Not all symbol
  // tables are part of the uuid (FORMAT.md, 3.1).
  std::string table_hash_;
  // Contents that the first message named.
  std::optional<std::string> uuid_;
  v1::WireEncoding encoding_ = v1::WIRE_ENCODING_IDENTITY;
  // Unset while no item is unanswered, so that a silent stream does not keep a
  // replaced archive in memory.
  std::optional<ServedContents> contents_ ABSL_GUARDED_BY(mutex_);
  // Held until gRPC has released the last answer. Items without an answer are
  // waiting, planned, fetching, ready, or in the message being written.
  BatchMemory memory_ ABSL_GUARDED_BY(mutex_);
  PinnedBlocks pinned_ ABSL_GUARDED_BY(mutex_);
  WaitingItems waiting_ ABSL_GUARDED_BY(mutex_);
  // At most one: the item to fetch once the window has space, and its plan.
  // Used only by Act().
  std::list<BatchAnswer> next_;
  AnswerPlan next_plan_;
  std::list<BatchAnswer> fetching_ ABSL_GUARDED_BY(mutex_);
  std::list<BatchAnswer> ready_ ABSL_GUARDED_BY(mutex_);
  // Unused elements for later items, while items are unanswered: allocations
  // dominate the time of a short item.
  std::list<BatchAnswer> spare_ ABSL_GUARDED_BY(mutex_);
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool all_received_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t writing_own_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<BlockAddress> writing_blocks_ ABSL_GUARDED_BY(mutex_);
  BatchMemory::Counts writing_count_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StartBatchCall(
    ServiceCore& core, grpc::CallbackServerContext& context) {
  auto* call = new BatchCall(core, context);
  call->Start();
  return call;
}

}  // namespace quire
