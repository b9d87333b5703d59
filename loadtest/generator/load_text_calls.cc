// SPDX-License-Identifier: Apache-2.0
//
// Calls for one place of the text: Read, ReadStream and Scan.
#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>

#include "grpcpp/support/client_callback.h"

#include "loadtest/generator/answer_checker.h"
#include "loadtest/generator/call_attempt.h"
#include "loadtest/generator/load_calls.h"

namespace quire {
namespace {

using StartFunction = void (*)(LoadContext& load, LoadCall call);

void StartUnary(LoadContext& load, LoadCall call);
template <typename Message>
void StartStream(LoadContext& load, LoadCall call);

// State of a call, and its end.
class TextCall {
 protected:
  TextCall(LoadContext& load, LoadCall call, bool is_unary)
      : attempt_(load, is_unary),
        call_(std::move(call)),
        checker_(load.source, call_.target, attempt_.wire()) {}

  v1::Archive::Stub::async_interface* stub() {
    return attempt_.load().StubOf(call_.index).async();
  }

  // Records the result of a call that ended at `ended_ns`, except the success
  // of a scan, whose messages are recorded. Returns what follows once this
  // object is destroyed: `again` after a delay if the server asks for it, else
  // the end. `again` may be null.
  LoadCallDone Conclude(CallEnd end, uint64_t ended_ns, StartFunction again,
                        bool is_scan) {
    LoadContext& load = attempt_.load();
    LoadOutcome outcome{
        .target = call_.target, .due_ns = call_.due_ns, .ended_ns = ended_ns};
    if (checker_.has_fault() || end.status.ok()) {
      outcome.fault = checker_.Finish();
      outcome.cost = checker_.TakeCost();
      if (!is_scan || outcome.fault.has_value()) {
        load.recorder.Record(outcome);
      }
      return std::move(call_.done);
    }
    const std::optional<absl::Duration> delay =
        again == nullptr ? std::nullopt
                         : attempt_.RetryDelay(end, call_.due_ns);
    if (delay.has_value()) {
      return [&load, again, wait = *delay, call = std::move(call_)]() mutable {
        After(wait, [&load, again, call = std::move(call)]() mutable {
          again(load, std::move(call));
        });
      };
    }
    if (load.open_calls.is_cancelled()) {
      load.recorder.CountUnanswered(call_.due_ns, ended_ns, 1);
    } else {
      outcome.status = std::move(end.status);
      outcome.reason = std::move(end.reason);
      load.recorder.Record(outcome);
    }
    return std::move(call_.done);
  }

  CallAttempt attempt_;
  LoadCall call_;
  AnswerChecker checker_;
};

// One Read. Deletes itself when it has ended.
class UnaryCall : private TextCall {
 public:
  UnaryCall(LoadContext& load, LoadCall call)
      : TextCall(load, std::move(call), /*is_unary=*/true) {
    attempt_.FillIn(request_);
    SetTargetOf(call_.target, request_);
  }

  void Start() {
    stub()->Read(&attempt_.context(), &request_, &response_,
                 [this](const grpc::Status& status) { Finish(status); });
  }

 private:
  void Finish(const grpc::Status& status) {
    std::unique_ptr<UnaryCall> self(this);
    LoadContext& load = attempt_.load();
    // Before comparing, which is not part of the latency.
    const uint64_t ended_ns = load.NowNs();
    CallEnd end = attempt_.EndOf(status);
    LoadCallDone next;
    if (end.reason == "LIMIT_EXCEEDED" && !call_.target.place.has_value()) {
      next = [&load, call = std::move(call_)]() mutable {
        StartStream<v1::ReadStreamResponse>(load, std::move(call));
      };
    } else {
      if (status.ok()) {
        checker_.Check(response_);
      }
      next = Conclude(std::move(end), ended_ns, StartUnary, /*is_scan=*/false);
    }
    self.reset();
    next();
  }

  v1::ReadRequest request_;
  v1::ReadResponse response_;
};

// One ReadStream, whose messages are one request together, or one Scan, whose
// messages are requests. Deletes itself when it has ended.
template <typename Message>
class StreamCall final : public grpc::ClientReadReactor<Message>,
                         private TextCall {
 public:
  StreamCall(LoadContext& load, LoadCall call)
      : TextCall(load, std::move(call), /*is_unary=*/false) {
    attempt_.FillIn(request_);
    if constexpr (kIsScan) {
      request_.set_offset(call_.target.place->offset);
      request_.set_size_bytes(call_.target.place->size_bytes);
    } else {
      SetTargetOf(call_.target, request_);
    }
  }

  void Start() {
    if constexpr (kIsScan) {
      stub()->Scan(&attempt_.context(), &request_, this);
    } else {
      stub()->ReadStream(&attempt_.context(), &request_, this);
    }
    this->StartRead(&message_);
    this->StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok || checker_.has_fault()) {
      return;
    }
    LoadContext& load = attempt_.load();
    attempt_.NoteMessage();
    const uint64_t ended_ns = load.NowNs();
    checker_.Check(message_);
    if (checker_.has_fault()) {
      // OnDone() records it.
      attempt_.context().TryCancel();
      return;
    }
    if (kIsScan) {
      load.recorder.Record({.due_ns = call_.due_ns,
                            .ended_ns = ended_ns,
                            .cost = checker_.TakeCost()});
      // Comparing is not part of the latency.
      call_.due_ns = load.NowNs();
    }
    attempt_.WaitForMessage();
    this->StartRead(&message_);
  }

  void OnDone(const grpc::Status& status) override {
    std::unique_ptr<StreamCall> self(this);
    // A repeated scan would record its messages twice.
    const bool may_repeat = !kIsScan || checker_.received_bytes() == 0;
    LoadCallDone next =
        Conclude(attempt_.EndOf(status), attempt_.load().NowNs(),
                 may_repeat ? StartStream<Message> : nullptr, kIsScan);
    self.reset();
    next();
  }

 private:
  static constexpr bool kIsScan = std::is_same_v<Message, v1::ScanResponse>;

  std::conditional_t<kIsScan, v1::ScanRequest, v1::ReadRequest> request_;
  Message message_;
};

void StartUnary(LoadContext& load, LoadCall call) {
  (new UnaryCall(load, std::move(call)))->Start();
}

template <typename Message>
void StartStream(LoadContext& load, LoadCall call) {
  (new StreamCall<Message>(load, std::move(call)))->Start();
}

}  // namespace

void StartLoadRead(LoadContext& load, LoadCall call) {
  const std::optional<TextSpan>& place = call.target.place;
  place.has_value() && place->size_bytes > load.limits.read_size_bytes_max()
      ? StartStream<v1::ReadStreamResponse>(load, std::move(call))
      : StartUnary(load, std::move(call));
}

void StartLoadScan(LoadContext& load, uint64_t part, uint64_t part_count,
                   LoadCall call) {
  // The first parts are a byte longer if the size does not divide.
  const uint64_t size = load.archive_size_bytes / part_count;
  const uint64_t rest = load.archive_size_bytes % part_count;
  call.target.place = TextSpan{size * part + std::min(part, rest),
                               size + (part < rest ? 1 : 0)};
  StartStream<v1::ScanResponse>(load, std::move(call));
}

}  // namespace quire
