// SPDX-License-Identifier: Apache-2.0
#include "loadtest/load_run.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/alarm.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/client_callback.h"

#include "proto/error_details.h"
#include "proto/quire/v1/archive.grpc.pb.h"

#include "codecs/base/mutex.h"
#include "loadtest/answer_checker.h"
#include "loadtest/load_tables.h"
#include "loadtest/load_targets.h"

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kFaultsKeptMax = 5;

absl::Status ToAbslStatus(const grpc::Status& status) {
  return {static_cast<absl::StatusCode>(status.error_code()),
          status.error_message()};
}

// How a call ended: an error, or a fault of the answer in words, or neither.
struct Outcome {
  ReadTarget target = {};
  // Of the request's first call.
  Clock::time_point started = {};
  grpc::Status status = {};
  std::optional<std::string> fault = {};
  uint64_t latency_us = 0;
  uint64_t wire_bytes = 0;
  uint64_t message_bytes = 0;

  // After all messages were checked.
  void Complete(AnswerChecker& checker) {
    fault = checker.Finish();
    latency_us += checker.decode_ns() / 1000;
    wire_bytes = checker.wire_size_bytes();
    message_bytes = checker.message_size_bytes();
  }
};

// What a request asks for; a call has its own, or none for identity.
std::unique_ptr<WireCall> StartWireCall(LoadTables* tables) {
  return tables == nullptr ? nullptr : tables->StartCall();
}

class Run {
 public:
  Run(const std::shared_ptr<grpc::Channel>& channel, const SourceText& source,
      const LoadOptions& options, uint64_t read_size_bytes_max,
      LoadTables* tables)
      : stub_(v1::Archive::NewStub(channel)),
        source_(source),
        options_(options),
        tables_(tables),
        read_size_bytes_max_(read_size_bytes_max) {}

  LoadReport Execute();

  v1::Archive::Stub& stub() { return *stub_; }

  const SourceText& source() const { return source_; }

  LoadTables* tables() const { return tables_; }

  void Prepare(const ReadTarget& target, const WireCall* wire,
               grpc::ClientContext& context, v1::ReadRequest& request) const;

  // Called once by each call, on a thread of gRPC: counts it and starts the
  // next one in its place, or the same again where the server said when.
  void Finish(const Outcome& outcome);

 private:
  ReadTarget TargetOf(uint64_t request_index) const {
    return TargetOfRequest(source_, options_, read_size_bytes_max_,
                           request_index);
  }

  void Record(const Outcome& outcome) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The next request's number; nullopt if no more is to start.
  std::optional<uint64_t> TakeNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Start(const ReadTarget& target, Clock::time_point started);
  // Whether the request is to be called again; then it will be.
  bool RetryLater(const Outcome& outcome);

  const std::unique_ptr<v1::Archive::Stub> stub_;
  const SourceText& source_;
  const LoadOptions& options_;
  LoadTables* const tables_;
  const uint64_t read_size_bytes_max_;
  const Clock::time_point started_ = Clock::now();

  Mutex mutex_;
  CondVar ended_;
  uint64_t next_index_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  LoadReport report_ ABSL_GUARDED_BY(mutex_);
};

uint64_t MicrosecondsSince(Clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() -
                                                            start)
          .count());
}

// One Read. Deletes itself when it has ended.
class ReadCall {
 public:
  ReadCall(Run& run, const ReadTarget& target, Clock::time_point started)
      : run_(run),
        target_(target),
        started_(started),
        wire_(StartWireCall(run.tables())) {
    run_.Prepare(target, wire_.get(), context_, request_);
  }

  void Start() {
    run_.stub().async()->Read(
        &context_, &request_, &response_,
        [this](grpc::Status status) { Finish(std::move(status)); });
  }

 private:
  void Finish(grpc::Status status) {
    Outcome outcome{.target = target_,
                    .started = started_,
                    .status = std::move(status),
                    .latency_us = MicrosecondsSince(started_)};
    if (outcome.status.ok()) {
      AnswerChecker checker(run_.source(), target_, wire_.get());
      checker.Check(response_);
      outcome.Complete(checker);
    }
    Run& run = run_;
    delete this;
    run.Finish(outcome);
  }

  Run& run_;
  const ReadTarget target_;
  const Clock::time_point started_;
  const std::unique_ptr<WireCall> wire_;
  grpc::ClientContext context_;
  v1::ReadRequest request_;
  v1::ReadResponse response_;
};

// One ReadStream. Deletes itself when it has ended.
class StreamCall final
    : public grpc::ClientReadReactor<v1::ReadStreamResponse> {
 public:
  StreamCall(Run& run, const ReadTarget& target, Clock::time_point started)
      : run_(run),
        target_(target),
        started_(started),
        wire_(StartWireCall(run.tables())),
        checker_(run.source(), target, wire_.get()) {
    run_.Prepare(target, wire_.get(), context_, request_);
  }

  void Start() {
    run_.stub().async()->ReadStream(&context_, &request_, this);
    StartRead(&response_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (ok) {
      checker_.Check(response_);
      StartRead(&response_);
    }
  }

  void OnDone(const grpc::Status& status) override {
    Outcome outcome{.target = target_,
                    .started = started_,
                    .status = status,
                    .latency_us = MicrosecondsSince(started_)};
    if (status.ok()) {
      outcome.Complete(checker_);
    }
    Run& run = run_;
    delete this;
    run.Finish(outcome);
  }

 private:
  Run& run_;
  const ReadTarget target_;
  const Clock::time_point started_;
  const std::unique_ptr<WireCall> wire_;
  AnswerChecker checker_;
  grpc::ClientContext context_;
  v1::ReadRequest request_;
  v1::ReadStreamResponse response_;
};

void Run::Prepare(const ReadTarget& target, const WireCall* wire,
                  grpc::ClientContext& context,
                  v1::ReadRequest& request) const {
  if (wire != nullptr) {
    wire->FillIn(request);
  }
  context.set_deadline(std::chrono::system_clock::now() + options_.deadline);
  request.set_archive(options_.archive);
  if (target.row != nullptr) {
    request.mutable_document()->set_id(target.row->id);
  } else {
    request.mutable_range()->set_offset(target.offset);
    request.mutable_range()->set_size_bytes(target.size_bytes);
  }
}

void Run::Record(const Outcome& outcome) {
  ++report_.request_count;
  std::string fault;
  if (!outcome.status.ok()) {
    const absl::Status status = ToAbslStatus(outcome.status);
    const std::optional<ErrorDetails> details =
        ParseErrorDetails(outcome.status.error_details());
    ++report_.errors[absl::StrCat(absl::StatusCodeToString(status.code()),
                                  details.has_value() ? " " : "",
                                  details.has_value() ? details->reason : "")];
    fault =
        absl::StrCat(DescribeTarget(outcome.target), ": ", status.ToString());
  } else if (outcome.fault.has_value()) {
    ++report_.wrong_count;
    fault = *outcome.fault;
  } else {
    ++report_.right_count;
    report_.text_bytes += outcome.target.size_bytes;
    report_.wire_bytes += outcome.wire_bytes;
    report_.message_bytes += outcome.message_bytes;
    report_.latency.Add(outcome.latency_us);
    report_.timeline.Add(
        static_cast<uint64_t>(
            std::chrono::nanoseconds(Clock::now() - started_).count()),
        outcome.latency_us, outcome.target.size_bytes);
  }
  if (!fault.empty() && report_.faults.size() < kFaultsKeptMax) {
    report_.faults.push_back(std::move(fault));
  }
}

std::optional<uint64_t> Run::TakeNext() {
  if (next_index_ == options_.request_count) {
    return std::nullopt;
  }
  if (options_.duration.has_value() &&
      Clock::now() - started_ >= *options_.duration) {
    report_.end = LoadEnd::kDuration;
    return std::nullopt;
  }
  return next_index_++;
}

void Run::Start(const ReadTarget& target, Clock::time_point started) {
  if (target.row != nullptr && target.size_bytes > read_size_bytes_max_) {
    (new StreamCall(*this, target, started))->Start();
  } else {
    (new ReadCall(*this, target, started))->Start();
  }
}

bool Run::RetryLater(const Outcome& outcome) {
  if (outcome.status.ok() ||
      Clock::now() - outcome.started >= options_.deadline) {
    return false;
  }
  const std::optional<ErrorDetails> details =
      ParseErrorDetails(outcome.status.error_details());
  if (!details.has_value() || !details->retry_delay.has_value()) {
    return false;
  }
  auto* alarm = new grpc::Alarm;
  alarm->Set(std::chrono::system_clock::now() +
                 absl::ToChronoMilliseconds(*details->retry_delay),
             [this, alarm, target = outcome.target,
              started = outcome.started](bool /*not_cancelled*/) {
               delete alarm;
               Start(target, started);
             });
  return true;
}

void Run::Finish(const Outcome& outcome) {
  std::optional<uint64_t> next;
  if (RetryLater(outcome)) {
    MutexLock lock(&mutex_);
    ++report_.retry_count;
    return;
  }
  {
    MutexLock lock(&mutex_);
    Record(outcome);
    next = TakeNext();
    if (!next.has_value()) {
      --in_flight_;
      ended_.NotifyOne();
    }
  }
  if (next.has_value()) {
    Start(TargetOf(*next), Clock::now());
  }
}

LoadReport Run::Execute() {
  std::vector<uint64_t> first;
  {
    MutexLock lock(&mutex_);
    while (first.size() < options_.in_flight) {
      const std::optional<uint64_t> next = TakeNext();
      if (!next.has_value()) {
        break;
      }
      first.push_back(*next);
    }
    in_flight_ = static_cast<uint32_t>(first.size());
  }
  for (const uint64_t request_index : first) {
    Start(TargetOf(request_index), Clock::now());
  }
  MutexLock lock(&mutex_);
  while (in_flight_ > 0) {
    ended_.Wait(&mutex_);
  }
  report_.elapsed_seconds =
      std::chrono::duration<double>(Clock::now() - started_).count();
  return report_;
}

}  // namespace

absl::StatusOr<LoadReport> RunLoad(
    const std::shared_ptr<grpc::Channel>& channel, const SourceText& source,
    const LoadOptions& options) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + options.deadline);
  v1::GetArchiveRequest request;
  request.set_archive(options.archive);
  v1::GetArchiveResponse response;
  const grpc::Status status =
      v1::Archive::NewStub(channel)->GetArchive(&context, request, &response);
  if (!status.ok()) {
    return ToAbslStatus(status);
  }
  if (response.archive().size_bytes() != source.size_bytes()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "archive '", options.archive, "' has ", response.archive().size_bytes(),
        " bytes, its source ", source.size_bytes()));
  }
  if (source.size_bytes() == 0 ||
      (options.what == LoadKind::kDocuments && source.documents().empty())) {
    return absl::FailedPreconditionError("the source has nothing to read");
  }
  std::unique_ptr<LoadTables> tables;
  if (options.encoding != EncodingChoice::kIdentity) {
    absl::StatusOr<std::unique_ptr<LoadTables>> fetched =
        LoadTables::Fetch(channel, response.archive(), options.encoding,
                          ExpectedSizeBytes(source, options));
    if (!fetched.ok()) {
      return fetched.status();
    }
    tables = *std::move(fetched);
  }
  Run run(channel, source, options, response.limits().read_size_bytes_max(),
          tables.get());
  LoadReport report = run.Execute();
  report.archive = response.archive();
  report.is_compared = true;
  if (tables != nullptr) {
    const WireStats stats = tables->Stats();
    report.traffic = stats.traffic;
    report.ended_at = tables->EndedAt();
    report.fetched_bytes = stats.fetched_size_bytes;
  }
  return report;
}

}  // namespace quire
