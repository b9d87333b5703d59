// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/calls/chunk_stream.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codecs/base/memory_guard.h"
#include "codecs/base/status_macros.h"
#include "server/archive/stored_order.h"
#include "server/service/calls/reading_stream.h"
#include "server/service/calls/refused_call.h"
#include "server/service/calls/request_parser.h"
#include "server/service/calls/resume_token.h"
#include "server/service/limits/stream_window.h"
#include "server/service/read/answer_bytes.h"
#include "server/service/read/answer_read.h"
#include "server/service/read/read_planner.h"

namespace quire {
namespace {

// What a call keeps until its end and is charged for; less counts as a part of
// the call itself.
constexpr uint64_t kKeptBytesMin = 1 << 10;

// Places of a message in stored order, and what each takes at most, in memory
// and serialised.
constexpr size_t kPlacesMax = 2048;
constexpr uint64_t kPlaceBytes = sizeof(StoredPlace) + 32;

// What one message says besides its text.
struct ChunkHead {
  LogicalRange range;
  // In stored order: where the text belongs, and what follows.
  std::vector<StoredPlace> places;
  StoredOrder::Position next;
  bool is_first = false;
};

// One message to be.
struct Chunk {
  ChunkHead head;
  uint64_t pinned_bytes = 0;
  std::shared_ptr<RangeRead> read;
  // Set when the read has ended.
  std::optional<absl::StatusOr<Answer>> answer;
};

// Sends one range as a row of chunks. What differs between the methods is in
// the virtual functions.
class ChunkStream
    : public ReadingStream<grpc::ServerWriteReactor<grpc::ByteBuffer>> {
 public:
  ChunkStream(ServiceCore& core, grpc::CallbackServerContext& context,
              Method method, FetchClass fetch_class)
      : ReadingStream(core, method, context),
        client_(booking_.Client()),
        requester_{fetch_class, ClientIdOf(client_), booking_.fetch_times()} {}

  void Start(const grpc::ByteBuffer& buffer) {
    absl::Status status =
        OrNoMemory("begin a stream", [&] { return Begin(buffer); });
    Update([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      chunks_left_ = status.ok() && !(order_.has_value() && order_->at_end());
      End(std::move(status));
    });
  }

  void OnWriteDone(bool ok) override {
    booking_.ClientTookIt();
    // Or the blocks would stay until the next message.
    message_.Clear();
    Update([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      writing_ = false;
      window_.GiveBack(std::exchange(writing_pinned_bytes_, 0));
      if (!ok) {
        End(absl::CancelledError());
      }
      End(booking_.CheckAgain());
    });
  }

 protected:
  struct Task {
    std::shared_ptr<const ServedArchive> archive;
    ResolvedTarget target;
    v1::WireEncoding encoding = v1::WIRE_ENCODING_IDENTITY;
    // Of the document that was asked for, for the first message.
    std::string description = {};
    // Set for all of the archive in stored order; then `target` is not used.
    std::optional<StoredOrder> order = std::nullopt;
    StoredOrder::Position position = {};
  };

  // Errors: all that the method has for its request.
  virtual absl::StatusOr<Task> ResolveRequest(
      const grpc::ByteBuffer& buffer) = 0;
  // Appends the fields of a message that go before its text.
  virtual void AppendHead(const ChunkHead& head, const Answer& answer,
                          AnswerBytes& bytes) const = 0;
  virtual int data_field_number() const = 0;

  const Task& task() const { return task_; }

 private:
  absl::Status Begin(const grpc::ByteBuffer& buffer) {
    QUIRE_RETURN_IF_ERROR(RefuseIfDraining(core_));
    QUIRE_ASSIGN_OR_RETURN(task_, ResolveRequest(buffer));
    const bool is_stored_order = task_.order.has_value();
    const LogicalRange range = is_stored_order
                                   ? LogicalRange{{0},
                                                  task_.archive->archive->info()
                                                      .stored_text_size_bytes}
                                   : task_.target.range;
    const auto memory_bytes = [this, range](uint64_t size_bytes_max) {
      return AnswerMemoryBytesMax(*task_.archive,
                                  std::min(range.size_bytes, size_bytes_max),
                                  task_.encoding);
    };
    // gRPC keeps the request for as long as the call lives.
    const uint64_t kept_bytes =
        buffer.Length() + task_.description.size() +
        (is_stored_order ? StoredOrder::MemoryBytes(*task_.archive->archive)
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
                 BlockAnswerMemoryBytes(*task_.archive, task_.encoding) +
                 next_head_bytes_,
             .start_bytes = memory_bytes(core_.limits.chunk_size_bytes_max()) +
                            next_head_bytes_,
             .most_bytes =
                 std::min(core_.stream_window_size_bytes,
                          memory_bytes(range.size_bytes) + next_head_bytes_)}));
    next_offset_ = is_stored_order ? order_->offset() : range.offset.value;
    end_offset_ = range.offset.value + range.size_bytes;
    return absl::OkStatus();
  }

  bool Act() override {
    StartReads();
    StartWriteIfReady();
    return CancelReadsIfEnded();
  }

  void StartReads() ABSL_LOCKS_EXCLUDED(mutex_) {
    while (PrepareStretch()) {
      Chunk* chunk = nullptr;
      std::vector<BlockSlice> slices;
      {
        MutexLock lock(&mutex_);
        if (!ended_with_.ok() || !chunks_left_) {
          return;
        }
        if (order_.has_value()) {
          slices = stretch_->blocks;
        } else {
          slices = NextSlices();
        }
        const uint64_t pinned_bytes = MemoryBytes(slices);
        if (!window_.is_in_use()) {
          End(window_.Raise(pinned_bytes));
        }
        if (!ended_with_.ok() || !window_.TryTake(pinned_bytes)) {
          return;
        }
        uint64_t size_bytes = 0;
        for (const BlockSlice& slice : slices) {
          size_bytes += slice.size_bytes;
        }
        chunks_.push_back({.head = {.range = {{next_offset_}, size_bytes},
                                    .places = {},
                                    .next = {},
                                    .is_first = false},
                           .pinned_bytes = pinned_bytes,
                           .read = nullptr,
                           .answer = std::nullopt});
        // A deque never moves its elements while it grows and shrinks at its
        // ends; this one stays until its read has ended.
        chunk = &chunks_.back();
        if (order_.has_value()) {
          order_->Pass(*stretch_);
          chunk->head.places = std::move(stretch_->places);
          chunk->head.next = stretch_->next;
          next_offset_ = stretch_->next.offset;
          stretch_.reset();
          chunks_left_ = !order_->at_end();
        } else {
          next_offset_ += size_bytes;
          chunks_left_ = next_offset_ < end_offset_;
          // Only the first one has a description.
          next_head_bytes_ = kAnswerFramingSizeBytesMax;
        }
        ++reads_in_flight_;
      }
      std::shared_ptr<RangeRead> read = StartAnswer(
          core_.store, task_.archive, std::move(slices), task_.encoding,
          requester_, [this, chunk](absl::StatusOr<Answer> answer) {
            OnAnswer(chunk, std::move(answer));
          });
      MutexLock lock(&mutex_);
      if (read != nullptr) {
        chunk->read = std::move(read);
      }
    }
  }

  // Of the next chunk, if it is of these slices.
  uint64_t MemoryBytes(const std::vector<BlockSlice>& slices) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return AnswerMemoryBytes(*task_.archive, slices, task_.encoding) +
           next_head_bytes_;
  }

  // The blocks of the next chunk: as many as the window allows in a
  // message, but one in any case. A chunk ends where a block does, so that no
  // block is needed twice, unless a block is larger than a chunk.
  std::vector<BlockSlice> NextSlices() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const Archive& archive = *task_.archive->archive;
    const uint64_t size_bytes = std::min(
        core_.limits.chunk_size_bytes_max(),
        std::min(window_.message_size_bytes(), end_offset_ - next_offset_));
    std::vector<BlockSlice> slices =
        PlanBlocks(archive, {{next_offset_}, size_bytes});
    if (slices.size() > 1 && next_offset_ + size_bytes < end_offset_ &&
        slices.back().size_bytes <
            archive.BlockSizeBytes(slices.back().block)) {
      slices.pop_back();
    }
    // By halves where there are many, which a layout may make.
    while (slices.size() > 1 &&
           MemoryBytes(slices) > window_.message_size_bytes()) {
      slices.resize(slices.size() > 64 ? slices.size() / 2 : slices.size() - 1);
    }
    return slices;
  }

  // In stored order, finds the blocks of the next chunk, if there are none yet:
  // without the lock, as sorting a segment's runs takes long. False if there is
  // no next chunk.
  bool PrepareStretch() ABSL_LOCKS_EXCLUDED(mutex_) {
    uint64_t size_bytes = 0;
    uint64_t head_bytes = 0;
    {
      MutexLock lock(&mutex_);
      if (!ended_with_.ok() || !chunks_left_) {
        return false;
      }
      size_bytes = window_.message_size_bytes();
      head_bytes = next_head_bytes_;
    }
    if (order_.has_value() && !stretch_.has_value()) {
      stretch_ = order_->Peek(
          std::min(core_.limits.chunk_size_bytes_max(), size_bytes), kPlacesMax,
          [&](const std::vector<BlockSlice>& slices) {
            return AnswerMemoryBytes(*task_.archive, slices, task_.encoding) +
                       head_bytes <=
                   size_bytes;
          });
    }
    return true;
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
      writing_pinned_bytes_ = chunk.pinned_bytes;
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
  // Set in stored order; and what comes next, while there is no space for it.
  // Used by Begin(), then, as `chunks_left_` says, by Act() alone.
  std::optional<StoredOrder> order_;
  std::optional<StoredOrder::BlockRange> stretch_;
  // What describes the next chunk takes.
  uint64_t next_head_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t end_offset_ ABSL_GUARDED_BY(mutex_) = 0;
  // Held until gRPC has let go of the last message.
  StreamWindow window_ ABSL_GUARDED_BY(mutex_);
  uint64_t reads_in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t writing_pinned_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
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
    QUIRE_ASSIGN_OR_RETURN(task.archive,
                           booking_.access().FindToRead(request.archive()));
    QUIRE_ASSIGN_OR_RETURN(
        task.target, ResolveTarget(*task.archive->archive, request,
                                   core_.limits.document_id_size_bytes_max()));
    task.encoding = ChooseEncoding(request.accepted_encodings(), *task.archive);
    if (task.target.document.has_value()) {
      task.description =
          DescribeDocument(*task.archive->archive, *task.target.document);
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
    QUIRE_ASSIGN_OR_RETURN(task.archive,
                           booking_.access().FindToRead(request.archive()));
    const Archive& archive = *task.archive->archive;
    if (request.stored_order() && StoredOrder::IsThere(archive)) {
      QUIRE_ASSIGN_OR_RETURN(task.position,
                             ResolveStoredScan(archive, request));
      task.order.emplace(archive);
    } else {
      QUIRE_ASSIGN_OR_RETURN(task.target.range, ResolveScan(archive, request));
    }
    task.encoding = ChooseEncoding(request.accepted_encodings(), *task.archive);
    return task;
  }

  void AppendHead(const ChunkHead& chunk, const Answer& answer,
                  AnswerBytes& bytes) const override {
    const Archive& archive = *task().archive->archive;
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
                  archive,
                  ScanPosition{
                      .next_offset = range.offset.value + range.size_bytes,
                      .end_offset = all.offset.value + all.size_bytes})
            : MakeResumeToken(archive, chunk.next));
    bytes.AppendFields(head);
  }

  int data_field_number() const override {
    return v1::ScanResponse::kDataFieldNumber;
  }
};

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* StartReadStreamCall(
    ServiceCore& core, grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request) {
  return StartOrRefuse<grpc::ServerWriteReactor<grpc::ByteBuffer>>([&] {
    auto* call = new ReadStreamCall(core, context);
    call->Start(request);
    return call;
  });
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* StartScanCall(
    ServiceCore& core, grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request) {
  return StartOrRefuse<grpc::ServerWriteReactor<grpc::ByteBuffer>>([&] {
    auto* call = new ScanCall(core, context);
    call->Start(request);
    return call;
  });
}

}  // namespace quire
