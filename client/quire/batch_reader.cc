// SPDX-License-Identifier: Apache-2.0
#include "client/quire/batch_reader.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/cleanup/cleanup.h"

#include "client/quire/internal/batch_stream.h"
#include "client/quire/internal/connection.h"
#include "client/quire/internal/started_thread.h"

namespace quire {
namespace {

// Everything that waits for Next() counts, not only the text.
size_t AnswerSizeBytes(const BatchAnswer& answer) {
  size_t size_bytes = sizeof(BatchAnswer) + TextSizeBytes(answer.target);
  if (!answer.result.ok()) {
    return size_bytes + answer.result.status().message().size();
  }
  size_bytes += answer.result->data.size();
  if (const auto& document = answer.result->document; document.has_value()) {
    size_bytes += sizeof(v1::ByteRange) + document->id().size() +
                  document->media_type().size() +
                  document->record_type().size();
  }
  return size_bytes;
}

}  // namespace

BatchReader::BatchReader(std::shared_ptr<Connection> connection,
                         std::string archive, const BatchOptions& options)
    : connection_(std::move(connection)),
      archive_(std::move(archive)),
      options_(options) {
  absl::StatusOr<std::thread> thread = StartThread([this] { Run(); });
  if (thread.ok()) {
    thread_ = *std::move(thread);
  } else {
    MutexLock lock(&mutex_);
    fault_ = thread.status();
  }
}

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
  if (thread_.joinable()) {
    thread_.join();
  }
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
      ++unready_count_;
    }
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
    while (ready_.empty() && unready_count_ != 0 && fault_.ok()) {
      changed_.Wait(&mutex_);
    }
    if (ready_.empty()) {
      return NextFailed();
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

std::optional<BatchAnswer> BatchReader::NextFailed() {
  std::list<Pending>& from = sent_.empty() ? queue_ : sent_;
  if (from.empty()) {
    return std::nullopt;
  }
  BatchAnswer answer{.tag = from.front().item.tag,
                     .target = std::move(from.front().item.target),
                     .result = fault_};
  from.pop_front();
  --unready_count_;
  return answer;
}

size_t BatchReader::unanswered_count() const {
  MutexLock lock(&mutex_);
  return unready_count_ + ready_.size();
}

void BatchReader::Run() {
  Serve();
  changed_.NotifyAll();
}

void BatchReader::Serve() {
  RetryGovernor governor(*connection_);
  while (WaitForWork()) {
    absl::Status status;
    bool answered = false;
    absl::StatusOr<v1::Limits> limits = connection_->GetLimits(archive_);
    if (limits.ok()) {
      Stream stream(*this, *limits, governor.attempt());
      // Also if an allocation fails.
      const absl::Cleanup forget = [this] {
        MutexLock lock(&mutex_);
        stream_ = nullptr;
      };
      {
        MutexLock lock(&mutex_);
        stream_ = &stream;
        if (stop_) {
          stream.Cancel();
        }
      }
      status = stream.Run();
      answered = stream.answered();
    } else {
      status = limits.status();
    }
    if (answered) {
      governor.Progress();
    }
    // GetLimits() has repeated its call.
    const std::optional<absl::Duration> delay =
        limits.ok() ? governor.DelayAfter(status) : std::nullopt;
    if (!delay.has_value()) {
      status = governor.FinalError(status);
      governor.Reset();  // Items added from here on start a new attempt.
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
  sent_by_number_.clear();
  sent_.sort(
      [](const Pending& a, const Pending& b) { return a.number < b.number; });
  queue_.splice(queue_.begin(), sent_);
}

void BatchReader::FailAll(const absl::Status& status) {
  AskAgain();
  while (!queue_.empty()) {
    std::list<BatchAnswer> place(1);
    std::list<Pending> pending;
    pending.splice(pending.begin(), queue_, queue_.begin());
    Answer(std::move(pending), std::move(place), status);
  }
}

void BatchReader::Answer(std::list<Pending> pending,
                         std::list<BatchAnswer> place,
                         absl::StatusOr<ReadResult> result) {
  Item& item = pending.front().item;
  BatchAnswer& answer = place.front();
  answer.tag = item.tag;
  answer.target = std::move(item.target);
  answer.result = std::move(result);
  ready_size_bytes_ += AnswerSizeBytes(answer);
  ready_.splice(ready_.end(), place);
  --unready_count_;
}

}  // namespace quire
