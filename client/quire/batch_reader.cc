// SPDX-License-Identifier: Apache-2.0
#include "client/quire/batch_reader.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "grpcpp/client_context.h"
#include "grpcpp/support/sync_stream.h"

#include "client/quire/answer_check.h"
#include "client/quire/client_status.h"
#include "client/quire/connection.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Of one message of items: well below what servers accept by default (4 MiB),
// and more than is worth waiting for.
constexpr size_t kMessageSizeBytesMax = size_t{1} << 20;
// What an item takes on the wire besides its id, at most.
constexpr size_t kItemOverheadSizeBytes = 64;

size_t ItemSizeBytes(const ReadTarget& target) {
  const auto* key = std::get_if<DocumentKey>(&target);
  const auto* id =
      key == nullptr ? nullptr : std::get_if<std::string>(&key->name);
  return kItemOverheadSizeBytes + (id == nullptr ? 0 : id->size());
}

size_t AnswerSizeBytes(const BatchAnswer& answer) {
  return sizeof(BatchAnswer) +
         (answer.result.ok() ? answer.result->data.size() : 0);
}

}  // namespace

// One BatchRead call: a thread that writes, and the reader's own that reads.
class BatchReader::Stream {
 public:
  Stream(BatchReader& batch, const v1::Limits& limits)
      : batch_(batch),
        message_items_max_(limits.batch_message_items_max()),
        watchdog_(context_, batch.connection_->options().stream_idle_max),
        stream_(batch.connection_->stub().BatchRead(&context_)) {}

  // Thread-safe.
  void Cancel() { context_.TryCancel(); }

  // Whether any item was answered. To be asked after Run().
  bool answered() const { return answered_; }

  // The outcome of the stream, OK also if it ended before all was answered.
  absl::Status Run() {
    std::thread writer([this] { Write(); });
    const absl::Status fault = Read();
    {
      MutexLock lock(&batch_.mutex_);
      ended_ = true;
    }
    batch_.changed_.NotifyAll();
    if (!fault.ok()) {
      Cancel();
    }
    // Once the server's side has ended, no write blocks any more.
    writer.join();
    const absl::Status status = StatusFromGrpc(stream_->Finish());
    return fault.ok() ? watchdog_.Explain(status) : fault;
  }

 private:
  void Write() {
    v1::BatchReadRequest request;
    request.set_archive(batch_.archive_);
    request.add_accepted_encodings(v1::WIRE_ENCODING_IDENTITY);
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

  // Moves what fits in one message from the queue into it; nothing if all was
  // sent.
  void TakeItems(v1::BatchReadRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(batch_.mutex_) {
    size_t size_bytes = 0;
    while (!batch_.queue_.empty() &&
           static_cast<uint64_t>(request.items_size()) < message_items_max_) {
      Pending& next = batch_.queue_.front();
      size_bytes += ItemSizeBytes(next.item.target);
      if (!request.items().empty() && size_bytes > kMessageSizeBytesMax) {
        break;
      }
      v1::BatchItem* item = request.add_items();
      item->set_tag(next.number);
      SetTarget(next.item.target, *item);
      batch_.sent_.emplace(next.number, std::move(next));
      batch_.queue_.pop_front();
    }
    if (waiting_ && !armed_ && !batch_.sent_.empty()) {
      armed_ = true;
      watchdog_.Arm();
    }
  }

  // Reads to the end. A server that sends what was not asked is at fault.
  absl::Status Read() {
    v1::BatchReadResponse response;
    for (;;) {
      {
        MutexLock lock(&batch_.mutex_);
        while (!batch_.stop_ && batch_.ready_size_bytes_ >
                                    batch_.options_.ready_size_bytes_max) {
          batch_.changed_.Wait(&batch_.mutex_);
        }
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
        QUIRE_RETURN_IF_ERROR(TakeResult(result));
      }
      batch_.changed_.NotifyAll();
    }
  }

  absl::Status TakeResult(v1::BatchResult& result) {
    Pending pending;
    {
      MutexLock lock(&batch_.mutex_);
      const auto found = batch_.sent_.find(result.tag());
      if (found == batch_.sent_.end()) {
        return absl::InternalError(
            "the server answered an item of the batch that was not asked, or "
            "twice");
      }
      pending = std::move(found->second);
      batch_.sent_.erase(found);
    }
    // The checksum is computed outside of the lock.
    absl::StatusOr<ReadResult> answer =
        absl::InternalError("the server sent a status of no item");
    const absl::Status status = result.has_status()
                                    ? StatusFromItem(result.status())
                                    : absl::OkStatus();
    if (status.ok()) {
      answer = TakeAnswer(pending.item.target, result);
    } else {
      answer = status;
    }
    {
      MutexLock lock(&batch_.mutex_);
      batch_.Answer(std::move(pending), std::move(answer));
    }
    answered_ = true;
    return absl::OkStatus();
  }

  BatchReader& batch_;
  const uint64_t message_items_max_;
  grpc::ClientContext context_;
  StreamWatchdog watchdog_;
  const std::unique_ptr<
      grpc::ClientReaderWriter<v1::BatchReadRequest, v1::BatchReadResponse>>
      stream_;
  // The server's side has ended.
  bool ended_ ABSL_GUARDED_BY(batch_.mutex_) = false;
  // The reading thread waits for a message; with a time limit, if armed.
  bool waiting_ ABSL_GUARDED_BY(batch_.mutex_) = false;
  bool armed_ ABSL_GUARDED_BY(batch_.mutex_) = false;
  bool answered_ = false;
};

BatchReader::BatchReader(std::shared_ptr<Connection> connection,
                         std::string archive, const BatchOptions& options)
    : connection_(std::move(connection)),
      archive_(std::move(archive)),
      options_(options),
      thread_([this] { Run(); }) {}

BatchReader::~BatchReader() {
  {
    MutexLock lock(&mutex_);
    closed_ = true;
    stop_ = true;
    if (stream_ != nullptr) {
      stream_->Cancel();
    }
  }
  changed_.NotifyAll();
  thread_.join();
}

void BatchReader::Add(uint64_t tag, ReadTarget target) {
  std::vector<Item> items;
  items.push_back({.tag = tag, .target = std::move(target)});
  AddAll(std::move(items));
}

void BatchReader::AddAll(std::vector<Item> items) {
  {
    MutexLock lock(&mutex_);
    for (Item& item : items) {
      queue_.push_back({.number = next_number_++, .item = std::move(item)});
    }
    unready_count_ += items.size();
  }
  changed_.NotifyAll();
}

void BatchReader::CloseAdds() {
  {
    MutexLock lock(&mutex_);
    closed_ = true;
  }
  changed_.NotifyAll();
}

std::optional<BatchAnswer> BatchReader::Next() {
  std::optional<BatchAnswer> answer;
  bool has_room_again = false;
  {
    MutexLock lock(&mutex_);
    while (ready_.empty() && unready_count_ != 0) {
      changed_.Wait(&mutex_);
    }
    if (ready_.empty()) {
      return std::nullopt;
    }
    answer = std::move(ready_.front());
    ready_.pop_front();
    const bool was_full = ready_size_bytes_ > options_.ready_size_bytes_max;
    ready_size_bytes_ -= AnswerSizeBytes(*answer);
    has_room_again =
        was_full && ready_size_bytes_ <= options_.ready_size_bytes_max;
  }
  if (has_room_again) {
    changed_.NotifyAll();
  }
  return answer;
}

size_t BatchReader::unanswered_count() const {
  MutexLock lock(&mutex_);
  return unready_count_ + ready_.size();
}

void BatchReader::Run() {
  ResumeGovernor governor(connection_->options());
  while (WaitForWork()) {
    absl::Status status;
    bool answered = false;
    absl::StatusOr<v1::Limits> limits = connection_->GetLimits();
    if (limits.ok()) {
      Stream stream(*this, *limits);
      {
        MutexLock lock(&mutex_);
        stream_ = &stream;
        if (stop_) {
          stream.Cancel();
        }
      }
      status = stream.Run();
      answered = stream.answered();
      MutexLock lock(&mutex_);
      stream_ = nullptr;
    } else {
      status = limits.status();
    }
    if (answered) {
      governor.Progress();
    }
    const std::optional<absl::Duration> delay = governor.DelayAfter(status);
    if (!delay.has_value()) {
      governor.Progress();  // What is added from here on is a new beginning.
    }
    AfterStream(status, delay);
  }
}

bool BatchReader::WaitForWork() {
  MutexLock lock(&mutex_);
  while (!stop_ && !closed_ && queue_.empty()) {
    changed_.Wait(&mutex_);
  }
  return !stop_ && !queue_.empty();
}

void BatchReader::AfterStream(const absl::Status& status,
                              std::optional<absl::Duration> retry_delay) {
  {
    MutexLock lock(&mutex_);
    if (!retry_delay.has_value()) {
      FailAll(status.ok() ? absl::DataLossError(
                                "the server ended the batch without an answer "
                                "to this item")
                          : status);
    } else {
      AskAgain();
      const auto until = std::chrono::steady_clock::now() +
                         absl::ToChronoNanoseconds(*retry_delay);
      while (!stop_ && std::chrono::steady_clock::now() < until) {
        changed_.WaitFor(&mutex_, until - std::chrono::steady_clock::now());
      }
    }
  }
  changed_.NotifyAll();
}

void BatchReader::AskAgain() {
  std::vector<Pending> again;
  again.reserve(sent_.size());
  for (auto& [number, pending] : sent_) {
    again.push_back(std::move(pending));
  }
  sent_.clear();
  std::sort(again.begin(), again.end(), [](const Pending& a, const Pending& b) {
    return a.number > b.number;
  });
  for (Pending& pending : again) {
    queue_.push_front(std::move(pending));
  }
}

void BatchReader::FailAll(const absl::Status& status) {
  AskAgain();
  while (!queue_.empty()) {
    Pending pending = std::move(queue_.front());
    queue_.pop_front();
    Answer(std::move(pending), status);
  }
}

void BatchReader::Answer(Pending pending, absl::StatusOr<ReadResult> result) {
  ready_.push_back({.tag = pending.item.tag,
                    .target = std::move(pending.item.target),
                    .result = std::move(result)});
  ready_size_bytes_ += AnswerSizeBytes(ready_.back());
  --unready_count_;
}

}  // namespace quire
