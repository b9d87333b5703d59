// SPDX-License-Identifier: Apache-2.0
//
// One BatchRead call of a BatchReader, from start to end. A private part of
// batch_reader.cc: start at batch_reader.h, which documents the behaviour for
// callers.
//
// Items and answers live in the BatchReader; a stream only moves them. An item
// is in one list at any time, all under the BatchReader's mutex:
//   queue_   not yet sent; TakeItems() moves as many as a message holds to
//   sent_    sent and not answered; TakeResult() moves the item to
//   ready_   answered; Next() returns the answer to the caller.
// If the call ends early, items stay in sent_: the BatchReader moves them back
// to queue_ for the next stream, or answers them with the fault. So every item
// gets exactly one answer.
#ifndef QUIRE_CLIENT_QUIRE_INTERNAL_BATCH_STREAM_H_
#define QUIRE_CLIENT_QUIRE_INTERNAL_BATCH_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "grpcpp/client_context.h"
#include "grpcpp/support/sync_stream.h"

#include "client/quire/batch_reader.h"
#include "client/quire/client_status.h"
#include "client/quire/internal/answer_check.h"
#include "client/quire/internal/connection.h"
#include "client/quire/internal/started_thread.h"
#include "client/quire/internal/wire_call.h"
#include "codecs/base/status_macros.h"

namespace quire {

// Size limit of one message of items, in bytes: well below what servers accept
// by default (4 MiB). A single larger item is sent alone.
inline constexpr size_t kBatchMessageSizeBytesMax = size_t{1} << 20;

// Upper bound on an item's size on the wire, in bytes: 64 for tag, range, time,
// field numbers and lengths, plus its id and its record types.
inline size_t BatchItemSizeBytes(const ReadTarget& target) {
  constexpr size_t kOverheadSizeBytes = 64;
  // Field number and length of a type.
  constexpr size_t kTypeOverheadSizeBytes = 3;
  const auto* key = std::get_if<DocumentKey>(&target);
  return kOverheadSizeBytes + TextSizeBytes(target) +
         (key == nullptr ? 0
                         : key->record_types.size() * kTypeOverheadSizeBytes);
}

// Uses two threads: one that writes items, started and joined by Run(), and the
// caller of Run(), the BatchReader's own thread, which reads and checks
// answers. Neither holds the BatchReader's mutex while it waits for gRPC or
// computes a checksum. The writer sleeps while nothing is queued. The reader
// pauses while BatchOptions::ready_size_bytes_max of answers wait for Next(),
// which slows the server down by HTTP/2's flow control.
//
// The watchdog counts only while the reader waits for a message and the server
// owes one: an idle batch may be silent for any time.
//
// Must not outlive the BatchReader. Thread-compatible, except for Cancel().
class BatchReader::Stream {
 public:
  // Starts the call without waiting for it. `batch` is not owned; `attempt` is
  // that of CallRoute. REQUIRES: limits.batch_message_items_max() > 0, which
  // Connection::StoreLimits() ensures.
  Stream(BatchReader& batch, const v1::Limits& limits, int attempt)
      : batch_(batch),
        message_items_max_(limits.batch_message_items_max()),
        call_(batch.connection_->StartCall(batch.archive_,
                                           batch.options_.encoding)),
        watchdog_(context_, batch.connection_->options().stream_idle_max),
        stream_(Start(*batch.connection_, attempt)) {
    call_.SetAnswerSizeMax(limits.read_size_bytes_max());
  }

  // Makes reading and writing end soon, also before Run(), which then returns
  // Cancelled. Does not block; thread-safe; BatchReader's mutex may be held.
  void Cancel() { context_.TryCancel(); }

  // True if any item was answered, successfully or not: the server is alive,
  // and attempts are counted from the first again. REQUIRES: Run() has
  // returned.
  bool answered() const { return answered_; }

  // Blocks until the stream has ended: when all items are answered and
  // CloseAdds() was called, or by a fault. Called once. An item's error is its
  // answer; the stream continues. After OK, unanswered items are still in
  // sent_. Errors: those of the server and the network, and
  //   Cancelled         Cancel() was called
  //   DeadlineExceeded  the server owes an answer and was silent for
  //                     ClientOptions::stream_idle_max
  //   Internal          an answer that was not requested, or a second one
  //   ResourceExhausted the system cannot start another thread
  absl::Status Run() {
    absl::StatusOr<std::thread> writer = StartThread([this] { Write(); });
    absl::Status fault = writer.ok() ? Read() : writer.status();
    {
      MutexLock lock(&batch_.mutex_);
      ended_ = true;
    }
    batch_.changed_.NotifyAll();
    if (!fault.ok()) {
      Cancel();
    }
    // After the server's side has ended, writes do not block. After bytes that
    // are not a message it may still be open.
    watchdog_.Arm();
    if (writer.ok()) {
      writer->join();
    }
    const absl::Status status = StatusFromGrpc(stream_->Finish());
    watchdog_.Disarm();
    return fault.ok() ? watchdog_.Explain(status) : fault;
  }

 private:
  using BatchCall =
      grpc::ClientReaderWriter<v1::BatchReadRequest, v1::BatchReadResponse>;

  std::unique_ptr<BatchCall> Start(Connection& connection, int attempt) {
    AddCallHeaders(connection.options(),
                   {.archive = batch_.archive_, .attempt = attempt}, context_);
    return connection.stub().BatchRead(&context_);
  }

  // The writing thread: sends queued items until the batch is closed and all
  // are sent, the server's side has ended, or a write fails; Finish() returns
  // the reason.
  void Write() {
    v1::BatchReadRequest request;
    request.set_archive(batch_.archive_);
    if (batch_.options_.archive_uuid.has_value()) {
      request.set_archive_uuid(*batch_.options_.archive_uuid);
    }
    call_.FillIn(request);
    for (;;) {
      {
        MutexLock lock(&batch_.mutex_);
        while (!ended_ && !batch_.stop_ && batch_.queue_.empty() &&
               !batch_.closed_) {
          batch_.changed_.Wait(&batch_.mutex_);
        }
        if (ended_ || batch_.stop_) {
          return;
        }
        TakeItems(request);
      }
      if (request.items().empty()) {
        stream_->WritesDone();
        return;
      }
      if (!stream_->Write(request)) {
        return;
      }
      request.Clear();
    }
  }

  // Moves as many items as one message holds from the queue into it; nothing if
  // all were sent.
  void TakeItems(v1::BatchReadRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(batch_.mutex_) {
    size_t size_bytes = 0;
    while (!batch_.queue_.empty() &&
           static_cast<uint64_t>(request.items_size()) < message_items_max_) {
      Pending& next = batch_.queue_.front();
      size_bytes += BatchItemSizeBytes(next.item.target);
      if (!request.items().empty() && size_bytes > kBatchMessageSizeBytesMax) {
        break;
      }
      v1::BatchItem* item = request.add_items();
      item->set_tag(next.number);
      SetTarget(next.item.target, *item);
      batch_.sent_by_number_.emplace(next.number, batch_.queue_.begin());
      batch_.sent_.splice(batch_.sent_.end(), batch_.queue_,
                          batch_.queue_.begin());
    }
    if (waiting_ && !armed_ && !batch_.sent_.empty()) {
      armed_ = true;
      watchdog_.Arm();
    }
  }

  // Reads until the server's side ends; Finish() returns the reason. Errors:
  // Internal, if the server sends an answer that was not requested.
  absl::Status Read() {
    v1::BatchReadResponse response;
    for (;;) {
      WaitForSpace();
      {
        MutexLock lock(&batch_.mutex_);
        waiting_ = true;
        // While the server owes nothing it may be silent.
        armed_ = !batch_.sent_.empty();
        if (armed_) {
          watchdog_.Arm();
        }
      }
      const bool received = stream_->Read(&response);
      {
        MutexLock lock(&batch_.mutex_);
        waiting_ = false;
        armed_ = false;
        watchdog_.Disarm();
      }
      if (!received) {
        return absl::OkStatus();
      }
      for (v1::BatchResult& result : *response.mutable_results()) {
        // A short message may decode to far more than may wait for Next().
        WaitForSpace();
        QUIRE_RETURN_IF_ERROR(TakeResult(result));
      }
      batch_.changed_.NotifyAll();
    }
  }

  // Waits while more answers than allowed wait to be taken.
  void WaitForSpace() ABSL_LOCKS_EXCLUDED(batch_.mutex_) {
    bool is_told = false;
    MutexLock lock(&batch_.mutex_);
    while (!batch_.stop_ &&
           batch_.ready_size_bytes_ > batch_.options_.ready_size_bytes_max) {
      if (!std::exchange(is_told, true)) {
        batch_.changed_.NotifyAll();
      }
      batch_.changed_.Wait(&batch_.mutex_);
    }
  }

  // Checks and decodes the answer of one item and passes it to the BatchReader.
  // A bad answer is passed on too, as that item's status.
  // Errors: Internal  no such item waits; the stream cannot continue.
  absl::Status TakeResult(v1::BatchResult& result) {
    // From here on every exception must be caught.
    std::list<BatchAnswer> place(1);
    std::list<Pending> pending;
    {
      MutexLock lock(&batch_.mutex_);
      const auto found = batch_.sent_by_number_.find(result.tag());
      if (found == batch_.sent_by_number_.end()) {
        return absl::InternalError(
            "the server answered an item of the batch that was not asked, or "
            "twice");
      }
      pending.splice(pending.begin(), batch_.sent_, found->second);
      batch_.sent_by_number_.erase(found);
    }
    // The checksum is computed without the lock.
    absl::StatusOr<ReadResult> answer =
        Decode(pending.front().item.target, result);
    {
      MutexLock lock(&batch_.mutex_);
      batch_.Answer(std::move(pending), std::move(place), std::move(answer));
    }
    answered_ = true;
    return absl::OkStatus();
  }

  absl::StatusOr<ReadResult> Decode(const ReadTarget& target,
                                    v1::BatchResult& result) {
    if (result.has_status()) {
      QUIRE_RETURN_IF_ERROR(StatusFromItem(result.status()));
    }
    absl::StatusOr<ReadResult> answer = TakeAnswer(target, call_, result);
    if (IsTableGone(answer.status())) {
      return absl::UnavailableError(
          "the archive was replaced, or documents of it withdrawn, while the "
          "batch was read; ask again");
    }
    return answer;
  }

  BatchReader& batch_;
  const uint64_t message_items_max_;
  WireCall call_;
  grpc::ClientContext context_;
  StreamWatchdog watchdog_;
  const std::unique_ptr<BatchCall> stream_;
  // The server's side has ended.
  bool ended_ ABSL_GUARDED_BY(batch_.mutex_) = false;
  // True while the reading thread waits for a message; with a time limit if the
  // watchdog is armed.
  bool waiting_ ABSL_GUARDED_BY(batch_.mutex_) = false;
  bool armed_ ABSL_GUARDED_BY(batch_.mutex_) = false;
  bool answered_ = false;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_BATCH_STREAM_H_
