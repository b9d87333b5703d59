// SPDX-License-Identifier: Apache-2.0
//
// One BatchRead call of a BatchReader, from its start to its end. A private
// part of batch_reader.cc, in a file of its own for its length: start at
// batch_reader.h, which says what callers see.
//
// Items and answers live in the BatchReader; a stream only moves them. An item
// is in one place at any time, all under the BatchReader's mutex:
//   queue_   not yet sent; TakeItems() moves as many as a message holds to
//   sent_    sent, and owed an answer by the server; TakeResult() moves it to
//   ready_   answered; Next() gives it to the caller.
// If the call ends before its time, what is in sent_ stays there: the
// BatchReader puts it back into queue_ for the next stream, or answers it with
// the fault. So no item is lost, and none is answered twice.
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

// Of one message of items, in bytes: well below what servers accept by default
// (4 MiB), and more than is worth waiting for. One item larger than this
// travels alone.
inline constexpr size_t kBatchMessageSizeBytesMax = size_t{1} << 20;

// What an item takes on the wire, in bytes, at most: 64 are enough for tag,
// range, field numbers and lengths, and an id of any length is added as it is.
inline size_t BatchItemSizeBytes(const ReadTarget& target) {
  constexpr size_t kOverheadSizeBytes = 64;
  const auto* key = std::get_if<DocumentKey>(&target);
  const auto* id =
      key == nullptr ? nullptr : std::get_if<std::string>(&key->name);
  return kOverheadSizeBytes + (id == nullptr ? 0 : id->size());
}

// Two threads are at work: one that writes items, made and joined by Run(), and
// the caller of Run(), the BatchReader's own thread, which reads answers and
// checks them. Neither holds the BatchReader's mutex while it waits for gRPC or
// computes a checksum. The writer sleeps while nothing is queued; the reader
// stops reading while BatchOptions::ready_size_bytes_max of answers wait for
// Next(), which holds the server back by HTTP/2's flow control.
//
// The watchdog counts only while the reader waits for a message and the server
// owes one: a batch that no caller adds to may be silent for ever.
//
// Must not outlive the BatchReader. Thread-compatible, but for Cancel().
class BatchReader::Stream {
 public:
  // Starts the call, and does not wait for it. `batch` is not owned. With an
  // encoding of `auto` this may ask the server what the archive is, and blocks
  // for that long.
  // REQUIRES: limits.batch_message_items_max() > 0, which
  // Connection::StoreLimits() sees to.
  Stream(BatchReader& batch, const v1::Limits& limits)
      : batch_(batch),
        message_items_max_(limits.batch_message_items_max()),
        call_(batch.connection_->StartCall(batch.archive_,
                                           batch.options_.encoding)),
        watchdog_(context_, batch.connection_->options().stream_idle_max),
        stream_(Start(*batch.connection_)) {
    call_.SetAnswerSizeMax(limits.read_size_bytes_max());
  }

  // Ends reading and writing soon, also before Run(), which then returns
  // Cancelled. Does not block; thread-safe; BatchReader's mutex may be held.
  void Cancel() { context_.TryCancel(); }

  // What answers are decoded with; for the thread of Run().
  WireCall& call() { return call_; }

  // Whether items were left in the queue since `auto` prefers another encoding
  // for them, so that a new stream is due without any fault. REQUIRES: Run()
  // has returned.
  bool changes_encoding() const { return changes_encoding_; }

  // Whether any item was answered, well or not: then the server lives, and
  // attempts are counted from the first again. REQUIRES: Run() has returned.
  bool answered() const { return answered_; }

  // Blocks until the stream has ended: when all is answered and CloseAdds() was
  // called, when the encoding is to change, or by a fault. Once only. A fault
  // of a single item is that item's answer and ends nothing. OK does not mean
  // that all was answered: what is left in sent_ tells. Errors: those of the
  // server and the network, and
  //   Cancelled         Cancel() was called
  //   DeadlineExceeded  the server owes an answer and was silent for
  //                     ClientOptions::stream_idle_max
  //   Internal          it answered what was not asked, or twice
  //   ResourceExhausted the system starts no more threads
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
    // Once the server's side has ended, no write blocks any more. After bytes
    // that are not a message it may still be open.
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

  std::unique_ptr<BatchCall> Start(Connection& connection) {
    AddTraceParent(connection.options(), context_);
    return connection.stub().BatchRead(&context_);
  }

  // The writing thread: sends what is queued until the batch is closed and all
  // is sent, the server's side has ended, or a write fails, whose reason
  // Finish() tells.
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
        changes_encoding_ = !batch_.queue_.empty() && call_.wants_another();
        if (!changes_encoding_) {
          TakeItems(request);
        }
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

  // Moves what fits in one message from the queue into it; nothing if all was
  // sent.
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
    NoteWaiting();
    if (waiting_ && !armed_ && !batch_.sent_.empty()) {
      armed_ = true;
      watchdog_.Arm();
    }
  }

  // Reads to the end of the server's side, whatever the reason, which Finish()
  // tells. Errors: Internal, if the server sends what was not asked.
  absl::Status Read() {
    v1::BatchReadResponse response;
    for (;;) {
      WaitForSpace();
      {
        MutexLock lock(&batch_.mutex_);
        NoteWaiting();
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

  // Until answers are taken, if more than may wait for that are there.
  void WaitForSpace() ABSL_LOCKS_EXCLUDED(batch_.mutex_) {
    bool is_told = false;
    MutexLock lock(&batch_.mutex_);
    while (!batch_.stop_ &&
           batch_.ready_size_bytes_ > batch_.options_.ready_size_bytes_max) {
      call_.Pause();
      if (!std::exchange(is_told, true)) {
        batch_.changed_.NotifyAll();
      }
      batch_.changed_.Wait(&batch_.mutex_);
    }
  }

  // What `auto` compares is the time in which the server owed an answer; its
  // clock runs only then.
  void NoteWaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(batch_.mutex_) {
    batch_.sent_.empty() ? call_.Pause() : call_.Resume();
  }

  // Checks and decodes the answer of one item and hands it to the BatchReader.
  // A bad answer is handed over as well, as that item's status.
  // Errors: Internal  no such item waits: the stream cannot go on.
  absl::Status TakeResult(v1::BatchResult& result) {
    // From here on nothing may throw that is not caught.
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
    // The checksum is computed outside of the lock.
    absl::StatusOr<ReadResult> answer =
        Decode(pending.front().item.target, result);
    {
      MutexLock lock(&batch_.mutex_);
      batch_.Answer(std::move(pending), std::move(place), std::move(answer));
      NoteWaiting();
    }
    answered_ = true;
    return absl::OkStatus();
  }

  // What the answer to `target` says.
  absl::StatusOr<ReadResult> Decode(const ReadTarget& target,
                                    v1::BatchResult& result) {
    if (result.has_status()) {
      QUIRE_RETURN_IF_ERROR(StatusFromItem(result.status()));
    }
    absl::StatusOr<ReadResult> answer = TakeAnswer(target, call_, result);
    if (IsTableGone(answer.status())) {
      return absl::UnavailableError(
          "the archive was replaced while the batch was read; ask again");
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
  // The reading thread waits for a message; with a time limit, if armed.
  bool waiting_ ABSL_GUARDED_BY(batch_.mutex_) = false;
  bool armed_ ABSL_GUARDED_BY(batch_.mutex_) = false;
  bool answered_ = false;
  bool changes_encoding_ = false;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_BATCH_STREAM_H_
