// SPDX-License-Identifier: Apache-2.0
//
// A part of the whole text: Scan.
#include <algorithm>
#include <memory>
#include <utility>

#include "grpcpp/support/client_callback.h"

#include "loadtest/generator/answer_checker.h"
#include "loadtest/generator/load_call_base.h"
#include "loadtest/generator/load_calls.h"

namespace quire {
namespace {

struct Part {
  LoadTarget target = {};
  uint64_t call_index = 0;
  uint64_t due_ns = 0;
  LoadCallDone done;
};

void StartPart(LoadContext& load, Part part);

// One Scan. Deletes itself when it has ended.
class ScanCall final : public grpc::ClientReadReactor<v1::ScanResponse> {
 public:
  ScanCall(LoadContext& load, Part part)
      : attempt_(load, /*is_unary=*/false),
        part_(std::move(part)),
        checker_(load.source, part_.target, attempt_.wire()),
        waiting_since_ns_(part_.due_ns) {
    attempt_.FillIn(request_);
    request_.set_offset(part_.target.place->offset);
    request_.set_size_bytes(part_.target.place->size_bytes);
  }

  void Start() {
    attempt_.load()
        .StubOf(part_.call_index)
        .async()
        ->Scan(&attempt_.context(), &request_, this);
    StartRead(&response_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok || checker_.has_fault()) {
      return;
    }
    attempt_.NoteMessage();
    LoadOutcome outcome{.due_ns = waiting_since_ns_,
                        .ended_ns = attempt_.load().NowNs()};
    outcome.target.place =
        TextSpan{response_.range().offset(), response_.range().size_bytes()};
    const uint64_t decode_ns = checker_.decode_ns();
    const uint64_t received_bytes = checker_.received_bytes();
    checker_.Check(response_);
    if (checker_.has_fault()) {
      // Finish() reports it, once the stream has ended.
      attempt_.context().TryCancel();
      return;
    }
    outcome.decode_ns = checker_.decode_ns() - decode_ns;
    outcome.text_bytes = checker_.received_bytes() - received_bytes;
    outcome.wire_bytes = response_.data().size();
    outcome.message_bytes = response_.ByteSizeLong();
    attempt_.load().recorder.Record(outcome);
    // Comparing is not part of the latency.
    waiting_since_ns_ = attempt_.load().NowNs();
    attempt_.WaitForMessage();
    StartRead(&response_);
  }

  void OnDone(const grpc::Status& status) override {
    std::unique_ptr<ScanCall> self(this);
    LoadContext& load = attempt_.load();
    CallEnd end = attempt_.EndOf(status);
    if (!checker_.has_fault() && checker_.received_bytes() == 0) {
      const std::optional<absl::Duration> delay =
          attempt_.RetryDelay(end, part_.due_ns);
      if (delay.has_value()) {
        // The run may end, and be destroyed, before this call.
        Part again = std::move(part_);
        self.reset();
        After(*delay, [&load, part = std::move(again)]() mutable {
          StartPart(load, std::move(part));
        });
        return;
      }
    }
    LoadOutcome outcome{.target = part_.target,
                        .due_ns = waiting_since_ns_,
                        .ended_ns = load.NowNs()};
    if (checker_.has_fault() || end.status.ok()) {
      outcome.fault = checker_.Finish();
    } else if (attempt_.WasCancelled(end)) {
      load.recorder.CountUnanswered(outcome.due_ns, outcome.ended_ns, 1);
    } else {
      outcome.status = std::move(end.status);
      outcome.reason = std::move(end.reason);
    }
    // All messages of a successful stream are recorded.
    if (outcome.fault.has_value() || !outcome.status.ok()) {
      load.recorder.Record(outcome);
    }
    // The run may be destroyed with the last part.
    LoadCallDone done = std::move(part_.done);
    self.reset();
    done();
  }

 private:
  CallAttempt attempt_;
  Part part_;
  AnswerChecker checker_;
  uint64_t waiting_since_ns_;
  v1::ScanRequest request_;
  v1::ScanResponse response_;
};

void StartPart(LoadContext& load, Part part) {
  (new ScanCall(load, std::move(part)))->Start();
}

}  // namespace

void StartLoadScan(LoadContext& context, uint64_t part, uint64_t part_count,
                   uint64_t call_index, uint64_t due_ns, LoadCallDone done) {
  // The first parts are a byte longer if the size does not divide.
  const uint64_t size = context.archive_size_bytes / part_count;
  const uint64_t rest = context.archive_size_bytes % part_count;
  Part scan{
      .call_index = call_index, .due_ns = due_ns, .done = std::move(done)};
  scan.target.place = TextSpan{size * part + std::min(part, rest),
                               size + (part < rest ? 1 : 0)};
  StartPart(context, std::move(scan));
}

}  // namespace quire
