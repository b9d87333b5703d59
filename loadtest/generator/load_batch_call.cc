// SPDX-License-Identifier: Apache-2.0
//
// Many requests in one stream: BatchRead.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/support/client_callback.h"

#include "loadtest/generator/answer_checker.h"
#include "loadtest/generator/call_attempt.h"
#include "loadtest/generator/load_calls.h"

namespace quire {
namespace {

// Limit on a message of items: below the default limit of servers.
constexpr size_t kMessageSizeBytesMax = size_t{1} << 20;

// The requests of one batch and their state. Moves through its streams; there
// are several only if the server was busy.
struct Batch {
  std::vector<LoadTarget> targets;
  // By target: neither answered nor too large. Not vector<bool>, whose
  // neighbouring elements two threads must not use.
  std::vector<char> is_open;
  // Targets for ReadStream.
  std::vector<size_t> large;
  LoadCall call;
};

void StartBatchStream(LoadContext& load, std::unique_ptr<Batch> batch);

// Reads the too large targets, then ends the batch.
void ReadLarge(LoadContext& load, std::unique_ptr<Batch> batch) {
  if (batch->large.empty()) {
    batch->call.done();
    return;
  }
  LoadCall call{.target = batch->targets[batch->large.back()],
                .index = batch->call.index,
                .due_ns = batch->call.due_ns};
  batch->large.pop_back();
  call.done = [&load, batch = std::move(batch)]() mutable {
    ReadLarge(load, std::move(batch));
  };
  StartLoadRead(load, std::move(call));
}

// One BatchRead. Deletes itself when it has ended.
class BatchCall final : public grpc::ClientBidiReactor<v1::BatchReadRequest,
                                                       v1::BatchReadResponse> {
 public:
  BatchCall(LoadContext& load, std::unique_ptr<Batch> batch)
      : attempt_(load, /*is_unary=*/false), batch_(std::move(batch)) {
    attempt_.FillIn(request_);
  }

  void Start() {
    attempt_.load()
        .StubOf(batch_->call.index)
        .async()
        ->BatchRead(&attempt_.context(), this);
    WriteNext();
    StartRead(&response_);
    StartCall();
  }

  void OnWriteDone(bool ok) override {
    if (ok && !is_written_) {
      request_.Clear();
      WriteNext();
    }
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      return;
    }
    const uint64_t now_ns = attempt_.load().NowNs();
    attempt_.NoteMessage();
    for (const v1::BatchResult& result : response_.results()) {
      Take(result, now_ns);
    }
    attempt_.WaitForMessage();
    StartRead(&response_);
  }

  void OnDone(const grpc::Status& status) override {
    std::unique_ptr<BatchCall> self(this);
    LoadContext& load = attempt_.load();
    CallEnd end = attempt_.EndOf(status);
    const auto open_count = static_cast<uint64_t>(
        std::count(batch_->is_open.begin(), batch_->is_open.end(), char{1}));
    if (open_count > 0 && stranger_.empty()) {
      const std::optional<absl::Duration> delay =
          attempt_.RetryDelay(end, batch_->call.due_ns);
      if (delay.has_value()) {
        std::unique_ptr<Batch> again = std::move(batch_);
        self.reset();
        After(*delay, [&load, batch = std::move(again)]() mutable {
          StartBatchStream(load, std::move(batch));
        });
        return;
      }
    }
    if (load.open_calls.is_cancelled()) {
      load.recorder.CountUnanswered(batch_->call.due_ns, load.NowNs(),
                                    open_count + batch_->large.size());
      batch_->large.clear();
    } else {
      FailOpen(std::move(end));
    }
    std::unique_ptr<Batch> batch = std::move(batch_);
    self.reset();
    ReadLarge(load, std::move(batch));
  }

 private:
  // Writes one message of items, or the end of the stream.
  void WriteNext() {
    size_t size_bytes = 0;
    const size_t count = batch_->targets.size();
    // At least one, for progress.
    const uint64_t items_max =
        std::max<uint64_t>(1, attempt_.load().limits.batch_message_items_max());
    while (next_ < count && size_bytes < kMessageSizeBytesMax &&
           static_cast<uint64_t>(request_.items_size()) < items_max) {
      const size_t index = next_;
      const bool is_open = batch_->is_open[index] != 0;
      next_ = index + 1;
      if (is_open) {
        v1::BatchItem* item = request_.add_items();
        item->set_tag(index);
        SetTargetOf(batch_->targets[index], *item);
        size_bytes += item->ByteSizeLong();
      }
    }
    is_written_ = next_ == count;
    if (is_written_) {
      // The server may end the stream after the last answer.
      StartWriteLast(&request_, {});
    } else {
      StartWrite(&request_);
    }
  }

  void Take(const v1::BatchResult& result, uint64_t now_ns) {
    if (result.tag() >= next_ || batch_->is_open[result.tag()] == 0) {
      if (stranger_.empty()) {
        stranger_ = absl::StrCat("an answer to item ", result.tag(),
                                 ", which was not asked or was answered");
        attempt_.context().TryCancel();
      }
      return;
    }
    batch_->is_open[result.tag()] = 0;
    LoadOutcome outcome{.target = batch_->targets[result.tag()],
                        .due_ns = batch_->call.due_ns,
                        .ended_ns = now_ns};
    if (result.has_status() && result.status().code() != 0) {
      if (result.status().reason() == v1::LIMIT_EXCEEDED &&
          !outcome.target.place.has_value()) {
        batch_->large.push_back(result.tag());
        return;
      }
      outcome.status = {static_cast<absl::StatusCode>(result.status().code()),
                        result.status().message()};
      outcome.reason = v1::ErrorReason_Name(result.status().reason());
    } else {
      AnswerChecker checker(attempt_.load().source, outcome.target,
                            attempt_.wire());
      checker.Check(result);
      outcome.fault = checker.Finish();
      outcome.cost = checker.TakeCost();
    }
    attempt_.load().recorder.Record(outcome);
  }

  // Ends all targets without an answer.
  void FailOpen(CallEnd end) {
    LoadContext& load = attempt_.load();
    LoadOutcome outcome{.due_ns = batch_->call.due_ns,
                        .ended_ns = load.NowNs()};
    if (!stranger_.empty()) {
      outcome.fault = stranger_;
    } else if (end.status.ok()) {
      outcome.fault = "the stream ended without an answer to an item";
    } else {
      outcome.status = std::move(end.status);
      outcome.reason = std::move(end.reason);
    }
    bool is_told = stranger_.empty();
    for (size_t index = 0; index < batch_->targets.size(); ++index) {
      if (batch_->is_open[index] != 0) {
        outcome.target = batch_->targets[index];
        load.recorder.Record(outcome);
        is_told = true;
      }
    }
    if (!is_told) {
      // One answer too many is a fault even if all others were right.
      load.recorder.Record(outcome);
    }
  }

  CallAttempt attempt_;
  std::unique_ptr<Batch> batch_;
  // First target not yet written. OnReadDone() reads it while OnWriteDone() may
  // advance it; an answer comes after its item was written.
  std::atomic<size_t> next_ = 0;
  bool is_written_ = false;
  // A fault of the whole stream, in words.
  std::string stranger_;
  v1::BatchReadRequest request_;
  v1::BatchReadResponse response_;
};

void StartBatchStream(LoadContext& load, std::unique_ptr<Batch> batch) {
  (new BatchCall(load, std::move(batch)))->Start();
}

}  // namespace

void StartLoadBatch(LoadContext& load, uint64_t first_index, uint64_t count,
                    LoadCall call) {
  auto batch = std::make_unique<Batch>();
  batch->call = std::move(call);
  batch->targets.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    batch->targets.push_back(load.targets->At(first_index + i));
    const LoadTarget& target = batch->targets.back();
    const bool is_large =
        target.place.has_value() &&
        target.place->size_bytes > load.limits.read_size_bytes_max();
    batch->is_open.push_back(is_large ? 0 : 1);
    if (is_large) {
      batch->large.push_back(i);
    }
  }
  batch->large.size() == count ? ReadLarge(load, std::move(batch))
                               : StartBatchStream(load, std::move(batch));
}

}  // namespace quire
