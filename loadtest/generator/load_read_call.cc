// SPDX-License-Identifier: Apache-2.0
//
// Single requests: Read and ReadStream.
#include <memory>
#include <utility>

#include "grpcpp/support/client_callback.h"

#include "loadtest/generator/answer_checker.h"
#include "loadtest/generator/load_call_base.h"
#include "loadtest/generator/load_calls.h"

namespace quire {
namespace {

// A request in progress.
struct Request {
  LoadTarget target;
  uint64_t call_index = 0;
  uint64_t due_ns = 0;
  LoadCallDone done;
};

void StartUnary(LoadContext& load, Request request);
void StartStream(LoadContext& load, Request request);

// Called after the last message. Returns the callback for when the call is
// destroyed.
LoadCallDone Conclude(LoadContext& load, Request request, CallEnd end,
                      AnswerChecker& checker, uint64_t ended_ns) {
  LoadOutcome outcome{.target = request.target,
                      .due_ns = request.due_ns,
                      .ended_ns = ended_ns,
                      .status = std::move(end.status),
                      .reason = std::move(end.reason)};
  if (outcome.status.ok()) {
    outcome.fault = checker.Finish();
    outcome.decode_ns = checker.decode_ns();
    outcome.text_bytes = checker.received_bytes();
    outcome.wire_bytes = checker.wire_size_bytes();
    outcome.message_bytes = checker.message_size_bytes();
  }
  load.recorder.Record(outcome);
  return std::move(request.done);
}

// End of both kinds of call. Returns the callback for when the call is
// destroyed, not earlier: the run may end with the last request, which another
// call started here might end at once.
LoadCallDone AfterCall(CallAttempt& attempt, Request request, CallEnd end,
                       AnswerChecker& checker, bool is_stream) {
  LoadContext& load = attempt.load();
  const uint64_t ended_ns = load.NowNs();
  if (!is_stream && end.reason == "LIMIT_EXCEEDED" &&
      !request.target.place.has_value()) {
    return [&load, request = std::move(request)]() mutable {
      StartStream(load, std::move(request));
    };
  }
  const std::optional<absl::Duration> delay =
      attempt.RetryDelay(end, request.due_ns);
  if (delay.has_value()) {
    return [&load, is_stream, wait = *delay,
            request = std::move(request)]() mutable {
      After(wait, [&load, is_stream, request = std::move(request)]() mutable {
        is_stream ? StartStream(load, std::move(request))
                  : StartUnary(load, std::move(request));
      });
    };
  }
  if (attempt.WasCancelled(end)) {
    load.recorder.CountUnanswered(request.due_ns, ended_ns, 1);
    return std::move(request.done);
  }
  return Conclude(load, std::move(request), std::move(end), checker, ended_ns);
}

// One Read. Deletes itself when it has ended.
class UnaryCall {
 public:
  UnaryCall(LoadContext& load, Request request)
      : attempt_(load, /*is_unary=*/true), request_(std::move(request)) {
    attempt_.FillIn(message_);
    SetTargetOf(request_.target, message_);
  }

  void Start() {
    attempt_.load()
        .StubOf(request_.call_index)
        .async()
        ->Read(&attempt_.context(), &message_, &response_,
               [this](const grpc::Status& status) { Finish(status); });
  }

 private:
  void Finish(const grpc::Status& status) {
    std::unique_ptr<UnaryCall> self(this);
    AnswerChecker checker(attempt_.load().source, request_.target,
                          attempt_.wire());
    // Before comparing, which is not part of the latency.
    const uint64_t ended_ns = attempt_.load().NowNs();
    LoadCallDone done;
    CallEnd end = attempt_.EndOf(status);
    if (status.ok()) {
      checker.Check(response_);
      done =
          Conclude(attempt_.load(), std::move(request_), {}, checker, ended_ns);
    } else {
      done = AfterCall(attempt_, std::move(request_), std::move(end), checker,
                       /*is_stream=*/false);
    }
    self.reset();
    done();
  }

  CallAttempt attempt_;
  Request request_;
  v1::ReadRequest message_;
  v1::ReadResponse response_;
};

// One ReadStream. Deletes itself when it has ended.
class StreamCall final
    : public grpc::ClientReadReactor<v1::ReadStreamResponse> {
 public:
  StreamCall(LoadContext& load, Request request)
      : attempt_(load, /*is_unary=*/false),
        request_(std::move(request)),
        checker_(load.source, request_.target, attempt_.wire()) {
    attempt_.FillIn(message_);
    SetTargetOf(request_.target, message_);
  }

  void Start() {
    attempt_.load()
        .StubOf(request_.call_index)
        .async()
        ->ReadStream(&attempt_.context(), &message_, this);
    StartRead(&response_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (ok) {
      attempt_.NoteMessage();
      checker_.Check(response_);
      attempt_.WaitForMessage();
      StartRead(&response_);
    }
  }

  void OnDone(const grpc::Status& status) override {
    std::unique_ptr<StreamCall> self(this);
    LoadCallDone done =
        AfterCall(attempt_, std::move(request_), attempt_.EndOf(status),
                  checker_, /*is_stream=*/true);
    self.reset();
    done();
  }

 private:
  CallAttempt attempt_;
  Request request_;
  AnswerChecker checker_;
  v1::ReadRequest message_;
  v1::ReadStreamResponse response_;
};

void StartUnary(LoadContext& load, Request request) {
  (new UnaryCall(load, std::move(request)))->Start();
}

void StartStream(LoadContext& load, Request request) {
  (new StreamCall(load, std::move(request)))->Start();
}

}  // namespace

void StartLoadRead(LoadContext& context, const LoadTarget& target,
                   uint64_t call_index, uint64_t due_ns, LoadCallDone done) {
  Request request{.target = target,
                  .call_index = call_index,
                  .due_ns = due_ns,
                  .done = std::move(done)};
  const bool is_large =
      target.place.has_value() &&
      target.place->size_bytes > context.limits.read_size_bytes_max();
  is_large ? StartStream(context, std::move(request))
           : StartUnary(context, std::move(request));
}

}  // namespace quire
