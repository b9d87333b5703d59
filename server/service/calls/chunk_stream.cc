// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codecs/base/memory/free_memory.h"
#include "codecs/base/status_macros.h"
#include "server/archive/stored_order.h"
#include "server/service/base/service_error.h"
#include "server/service/calls/methods.h"
#include "server/service/calls/reading_stream.h"
#include "server/service/calls/request_parser.h"
#include "server/service/calls/resume_token.h"
#include "server/service/limits/stream_window.h"
#include "server/service/read/answer_bytes.h"
#include "server/service/read/answer_plan.h"
#include "server/service/read/answer_read.h"
#include "server/service/read/read_planner.h"

namespace quire {
namespace {

// Memory that a call keeps until its end and is charged for. Less counts as
// part of the call itself.
constexpr uint64_t kKeptBytesMin = 1 << 10;

// Limits on the ranges of a message in stored order, and on the memory and
// serialised size of each.
constexpr size_t kPlacesMax = 2048;
constexpr uint64_t kPlaceBytes = sizeof(StoredPlace) + 32;

// Fields of a message except its text.
struct ChunkHead {
  LogicalRange range;
  // Set in stored order: logical ranges of the text, and the next position.
  std::vector<StoredPlace> places;
  StoredOrder::Position next;
  bool is_first = false;
};

struct PlannedChunk {
  AnswerPlan plan;
  // Set in stored order.
  StoredOrder::BlockRange range;
};

// A message in preparation.
struct Chunk {
  ChunkHead head;
  uint64_t memory_bytes = 0;
  std::shared_ptr<AnswerRead> read;
  // Set when the read has ended.
  std::optional<absl::StatusOr<Answer>> answer;
};

absl::Status WithdrawnInStoredOrder() {
  return ServiceError(absl::StatusCode::kFailedPrecondition,
                      v1::DOCUMENT_WITHDRAWN,
                      "documents of the archive were withdrawn during the scan "
                      "in stored order; scan again");
}

// Sends one range as a row of chunks. The virtual functions hold the
// differences between the methods.
class ChunkStream
    : public ReadingStream<grpc::ServerWriteReactor<grpc::ByteBuffer>> {
 public:
  ChunkStream(ServiceCore& core, grpc::CallbackServerContext& context,
              Method method, FetchClass fetch_class)
      : ReadingStream(core, method, context),
        client_(booking_.Client()),
        requester_{fetch_class, ClientIdOf(client_), booking_.fetch_times()} {}

  void Start(const grpc::ByteBuffer& buffer) {
    absl::Status status = Begin(buffer);
    if (!status.ok()) {
      // Nothing is admitted that counts them, and a client may leave the status
      // unread.
      FreeMemory(task_.description);
      task_.order.reset();
      order_.reset();
    }
    Update([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      chunks_left_ = status.ok() && !(order_.has_value() && order_->at_end());
      End(std::move(status));
    });
  }

  void OnWriteDone(bool ok) override {
    booking_.ClientTookIt();
    // Otherwise the blocks would stay until the next message.
    message_.Clear();
    Update([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      writing_ = false;
      window_.GiveBack(std::exchange(writing_memory_bytes_, 0));
      if (!ok) {
        End(absl::CancelledError());
      }
      End(booking_.CheckAgain());
    });
  }

 protected:
  struct Task {
    ServedContents contents;
    ResolvedTarget target;
    v1::WireEncoding encoding = v1::WIRE_ENCODING_IDENTITY;
    // Description of the requested document, for the first message.
    std::string description = {};
    // Set to scan the whole archive in stored order; `target` is not used then.
    std::optional<StoredOrder> order = std::nullopt;
    StoredOrder::Position position = {};
  };

  // Errors: all errors of the method for its request.
  virtual absl::StatusOr<Task> ResolveRequest(
      const grpc::ByteBuffer& buffer) = 0;
  // Appends the fields of a message that precede its text.
  virtual void AppendHead(const ChunkHead& head, const Answer& answer,
                          AnswerBytes& bytes) const = 0;
  virtual int data_field_number() const = 0;

  const Task& task() const { return task_; }

 private:
  absl::Status Begin(const grpc::ByteBuffer& buffer) {
    QUIRE_RETURN_IF_ERROR(RefuseIfDraining(core_));
    QUIRE_ASSIGN_OR_RETURN(task_, ResolveRequest(buffer));
    const bool is_stored_order = task_.order.has_value();
    const LogicalRange range =
        is_stored_order ? LogicalRange{{0},
                                       task_.contents.archive->archive->info()
                                           .stored_text_size_bytes}
                        : task_.target.range;
    const auto memory_bytes = [this, range](uint64_t size_bytes_max) {
      return AnswerBytesMax(task_.contents,
                            std::min(range.size_bytes, size_bytes_max),
                            task_.encoding);
    };
    // gRPC keeps the request as long as the call.
    const uint64_t kept_bytes =
        buffer.Length() + task_.description.size() +
        (is_stored_order
             ? StoredOrder::MemoryBytes(*task_.contents.archive->archive)
             : 0);
    if (kept_bytes >= kKeptBytesMin) {
      QUIRE_ASSIGN_OR_RETURN(
          kept_ticket_,
          core_.admission.Admit(client_, kept_bytes, Admission::Use::kStream));
    }
    order_ = std::exchange(task_.order, std::nullopt);
    if (order_.has_value()) {
      QUIRE_RETURN_IF_ERROR(order_->GoTo(task_.position));
    }
    MutexLock lock(&mutex_);
    next_head_bytes_ = kAnswerFramingSizeBytesMax + task_.description.size() +
                       (is_stored_order ? kPlacesMax * kPlaceBytes : 0);
    QUIRE_ASSIGN_OR_RETURN(
        window_,
        StreamWindow::Open(
            core_.admission, client_,
            {.least_bytes =
                 BlockAnswerBytesMax(*task_.contents.archive, task_.encoding) +
                 next_head_bytes_,
             .start_bytes = memory_bytes(core_.limits.chunk_size_bytes_max()) +
                            next_head_bytes_,
             .most_bytes =
                 std::min(core_.stream_window_size_bytes,
                          memory_bytes(range.size_bytes) + next_head_bytes_)}));
    next_offset_ = is_stored_order ? order_->offset() : range.offset.value;
    end_offset_ = range.offset.value + range.size_bytes;
    task_.contents.FreeWithdrawal();
    return absl::OkStatus();
  }

  bool Act() override {
    StartReads();
    if (task_.target.document.has_value()) {
      EndIfWithdrawn();
    }
    StartWriteIfReady();
    return CancelReadsIfEnded();
  }

  // Neither chunks of the time before a withdrawal are sent, nor zeros.
  void EndIfWithdrawn() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::Status status = CheckStillThere(*task_.contents.archive, task_.target,
                                          task_.contents.withdrawal.generation);
    if (!status.ok()) {
      MutexLock lock(&mutex_);
      End(std::move(status));
    }
  }

  void StartReads() ABSL_LOCKS_EXCLUDED(mutex_) {
    while (PlanNext()) {
      Chunk* chunk = nullptr;
      {
        MutexLock lock(&mutex_);
        const uint64_t memory_bytes =
            next_->plan.memory_bytes() + next_head_bytes_;
        if (!window_.is_in_use()) {
          End(window_.Raise(memory_bytes));
        }
        if (!ended_with_.ok() || !window_.TryTake(memory_bytes)) {
          return;
        }
        const uint64_t size_bytes = next_->plan.size_bytes;
        chunks_.push_back({.head = {.range = {{next_offset_}, size_bytes},
                                    .places = std::move(next_->range.places),
                                    .next = next_->range.next,
                                    .is_first = false},
                           .memory_bytes = memory_bytes,
                           .read = nullptr,
                           .answer = std::nullopt});
        // A deque never moves its elements while it grows and shrinks at its
        // ends; this one stays until its read has ended.
        chunk = &chunks_.back();
        if (order_.has_value()) {
          order_->Pass(next_->range);
          next_offset_ = next_->range.next.offset;
          chunks_left_ = !order_->at_end();
        } else {
          next_offset_ += size_bytes;
          chunks_left_ = next_offset_ < end_offset_;
          // Only the first chunk has a description.
          next_head_bytes_ = kAnswerFramingSizeBytesMax;
        }
        ++reads_in_flight_;
      }
      AnswerPlan plan = std::move(next_->plan);
      next_.reset();
      std::shared_ptr<AnswerRead> read = AnswerRead::Start(
          core_.store, task_.contents.archive, std::move(plan), requester_,
          [this, chunk](absl::StatusOr<Answer> answer) {
            OnAnswer(chunk, std::move(answer));
          });
      if (read != nullptr) {
        MutexLock lock(&mutex_);
        chunk->read = std::move(read);
      }
    }
  }

  // Plans the next chunk, unless one is planned: as many blocks as fit a
  // message of this window, and at least one. Runs without the lock, as sorting
  // a segment's runs takes long. Returns false if there is no next chunk.
  bool PlanNext() ABSL_LOCKS_EXCLUDED(mutex_) {
    uint64_t message_bytes = 0;
    uint64_t head_bytes = 0;
    LogicalRange rest;
    {
      MutexLock lock(&mutex_);
      if (!ended_with_.ok() || !chunks_left_) {
        return false;
      }
      // The plan assumed a wider window than the current one.
      if (next_.has_value() && next_->plan.memory_bytes() + next_head_bytes_ >
                                   window_.size_bytes()) {
        next_.reset();
      }
      message_bytes = window_.message_size_bytes();
      head_bytes = next_head_bytes_;
      rest = {{next_offset_}, end_offset_ - next_offset_};
    }
    if (next_.has_value()) {
      return true;
    }
    next_.emplace();
    const uint64_t text_bytes_max =
        std::min(core_.limits.chunk_size_bytes_max(), message_bytes);
    const uint64_t memory_bytes_max =
        message_bytes - std::min(message_bytes, head_bytes);
    ServedContents contents = task_.contents;
    contents.TakeWithdrawal();
    if (order_.has_value()) {
      if (contents.withdrawal.has_documents()) {
        next_.reset();
        MutexLock lock(&mutex_);
        End(WithdrawnInStoredOrder());
        return false;
      }
      PlanStoredOrder(text_bytes_max, memory_bytes_max);
      return true;
    }
    const uint64_t size_bytes = std::min(text_bytes_max, rest.size_bytes);
    next_->plan = PlanChunk(contents, {rest.offset, size_bytes},
                            /*is_last=*/size_bytes == rest.size_bytes,
                            task_.encoding, memory_bytes_max);
    return true;
  }

  void PlanStoredOrder(uint64_t text_bytes_max, uint64_t memory_bytes_max) {
    next_->range = order_->Peek(
        text_bytes_max, kPlacesMax, [&](const std::vector<BlockSlice>& slices) {
          next_->plan =
              PlanSlices(*task_.contents.archive, slices, task_.encoding);
          return next_->plan.memory_bytes() <= memory_bytes_max;
        });
    if (next_->plan.size_bytes != next_->range.size_bytes) {
      next_->plan = PlanSlices(*task_.contents.archive, next_->range.blocks,
                               task_.encoding);
    }
  }

  void OnAnswer(Chunk* chunk, absl::StatusOr<Answer> answer)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    Update([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      chunk->answer = std::move(answer);
      --reads_in_flight_;
    });
  }

  void StartWriteIfReady() ABSL_LOCKS_EXCLUDED(mutex_) {
    ChunkHead head;
    Answer answer;
    {
      MutexLock lock(&mutex_);
      if (writing_ || !ended_with_.ok() || chunks_.empty() ||
          !chunks_.front().answer.has_value()) {
        return;
      }
      Chunk& chunk = chunks_.front();
      if (!chunk.answer->ok()) {
        End(chunk.answer->status());
        return;
      }
      head = std::move(chunk.head);
      answer = *std::move(*chunk.answer);
      writing_memory_bytes_ = chunk.memory_bytes;
      chunks_.pop_front();
      head.is_first = !std::exchange(wrote_first_, true);
    }
    AnswerBytes bytes;
    AppendHead(head, answer, bytes);
    bytes.AppendBytesField(data_field_number(), answer.pieces);
    message_ = bytes.Take();
    booking_.SendingAnswer(head.range.size_bytes, answer);
    BeginWriting();
    StartWrite(&message_);
  }

  bool IsComplete() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !chunks_left_ && chunks_.empty();
  }

  bool IsFetching() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return reads_in_flight_ > 0;
  }

  Reads ActiveReads() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Reads reads;
    for (const Chunk& chunk : chunks_) {
      if (chunk.read != nullptr && !chunk.answer.has_value()) {
        reads.push_back(chunk.read);
      }
    }
    return reads;
  }

  const std::string client_;
  const Requester requester_;
  Task task_;
  // For a long request or description, which is kept as long as the call.
  Admission::Ticket kept_ticket_;
  // The message being written.
  grpc::ByteBuffer message_;

  // In logical order; the first is the next to be sent.
  std::deque<Chunk> chunks_ ABSL_GUARDED_BY(mutex_);
  bool chunks_left_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t next_offset_ ABSL_GUARDED_BY(mutex_) = 0;
  // Set in stored order. Used by Begin(), then, while `chunks_left_`, only by
  // Act().
  std::optional<StoredOrder> order_;
  // Next chunk, while there is no space for it. Used only by Act().
  std::optional<PlannedChunk> next_;
  // Memory of the next chunk's description.
  uint64_t next_head_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t end_offset_ ABSL_GUARDED_BY(mutex_) = 0;
  // Held until gRPC has released the last message.
  StreamWindow window_ ABSL_GUARDED_BY(mutex_);
  uint64_t reads_in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t writing_memory_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool wrote_first_ ABSL_GUARDED_BY(mutex_) = false;
};

class ReadStreamCall : public ChunkStream {
 public:
  ReadStreamCall(ServiceCore& core, grpc::CallbackServerContext& context)
      : ChunkStream(core, context, Method::kReadStream,
                    FetchClass::kInteractive) {}

 private:
  absl::StatusOr<Task> ResolveRequest(const grpc::ByteBuffer& buffer) override {
    v1::ReadRequest request;
    QUIRE_RETURN_IF_ERROR(ParseRequest(buffer, request));
    booking_.NoteRequest(request);
    Task task;
    QUIRE_ASSIGN_OR_RETURN(task.contents,
                           booking_.access().FindContents(request));
    QUIRE_ASSIGN_OR_RETURN(
        task.target, ResolveTarget(task.contents, request,
                                   core_.limits.document_id_size_bytes_max()));
    task.encoding = ChooseEncoding(request.accepted_encodings(), task.contents);
    if (task.target.document.has_value()) {
      task.description =
          DescribeDocument(*task.contents.view.archive, *task.target.document);
    }
    return task;
  }

  void AppendHead(const ChunkHead& chunk, const Answer& answer,
                  AnswerBytes& bytes) const override {
    v1::ReadStreamResponse head;
    *head.mutable_range() = ToProto(chunk.range);
    DescribeData(answer, head);
    bytes.AppendFields(head);
    if (chunk.is_first && !task().description.empty()) {
      bytes.AppendField(
          {v1::ReadStreamResponse::kDocumentFieldNumber, task().description});
    }
  }

  int data_field_number() const override {
    return v1::ReadStreamResponse::kDataFieldNumber;
  }
};

class ScanCall : public ChunkStream {
 public:
  ScanCall(ServiceCore& core, grpc::CallbackServerContext& context)
      : ChunkStream(core, context, Method::kScan, FetchClass::kScan) {}

 private:
  absl::StatusOr<Task> ResolveRequest(const grpc::ByteBuffer& buffer) override {
    v1::ScanRequest request;
    QUIRE_RETURN_IF_ERROR(ParseRequest(buffer, request));
    Task task;
    QUIRE_ASSIGN_OR_RETURN(task.contents,
                           booking_.access().FindContents(request));
    ArchiveView& view = task.contents.view;
    QUIRE_ASSIGN_OR_RETURN(view, StateOfScan(view, request));
    // Stored text may be of a withdrawn document and of another one.
    const bool has_withdrawn = task.contents.withdrawal.has_documents();
    const bool has_stored_token =
        request.stored_order() && HasStoredToken(request);
    if (has_stored_token && has_withdrawn) {
      return WithdrawnInStoredOrder();
    }
    if (has_stored_token ||
        (request.stored_order() && !has_withdrawn &&
         StoredOrder::IsThere(view) && !HasLogicalToken(request))) {
      QUIRE_ASSIGN_OR_RETURN(task.position, ResolveStoredScan(view, request));
      task.order.emplace(view);
      segments_id_ = StoredOrder::SegmentsId(view);
    } else {
      QUIRE_ASSIGN_OR_RETURN(task.target.range, ResolveScan(view, request));
    }
    task.encoding = ChooseEncoding(request.accepted_encodings(), task.contents);
    return task;
  }

  void AppendHead(const ChunkHead& chunk, const Answer& answer,
                  AnswerBytes& bytes) const override {
    const ArchiveView& view = task().contents.view;
    const LogicalRange range = chunk.range;
    v1::ScanResponse head;
    *head.mutable_range() = ToProto(range);
    DescribeData(answer, head);
    for (const StoredPlace& from : chunk.places) {
      v1::ScanPlace& place = *head.add_places();
      place.set_offset(from.offset);
      place.set_text_offset(from.offset_in_text);
      place.set_size_bytes(from.size_bytes);
    }
    const LogicalRange all = task().target.range;
    head.set_resume_token(
        chunk.places.empty()
            ? MakeResumeToken(
                  view,
                  ScanPosition{
                      .next_offset = range.offset.value + range.size_bytes,
                      .end_offset = all.offset.value + all.size_bytes})
            : MakeResumeToken(view, chunk.next, segments_id_));
    bytes.AppendFields(head);
  }

  int data_field_number() const override {
    return v1::ScanResponse::kDataFieldNumber;
  }

  // In stored order.
  uint64_t segments_id_ = 0;
};

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* StartReadStreamCall(
    ServiceCore& core, grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request) {
  auto* call = new ReadStreamCall(core, context);
  call->Start(request);
  return call;
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* StartScanCall(
    ServiceCore& core, grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request) {
  auto* call = new ScanCall(core, context);
  call->Start(request);
  return call;
}

}  // namespace quire
