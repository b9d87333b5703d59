// SPDX-License-Identifier: Apache-2.0
#include "loadtest/generator/load_run.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"

#include "proto/quire/v1/archive.grpc.pb.h"

#include "client/quire/client_status.h"
#include "client/quire/internal/connection.h"
#include "codecs/base/byte_size.h"
#include "codecs/base/mutex.h"
#include "codecs/base/status_macros.h"
#include "loadtest/generator/load_calls.h"
#include "loadtest/generator/load_tables.h"
#include "loadtest/requests/load_pacer.h"
#include "loadtest/requests/load_targets.h"

namespace quire {
namespace {

// Interval of checks for an interrupt or the end of the time.
constexpr uint64_t kTickNs = 20'000'000;
// Not part of the load, so that a short deadline does not end it.
constexpr std::chrono::seconds kDescribeTimeMax(30);

uint64_t ToNs(std::chrono::milliseconds time) {
  return static_cast<uint64_t>(std::chrono::nanoseconds(time).count());
}

double OwnCpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class Run {
 public:
  Run(LoadContext& context, const LoadInputs& inputs)
      : context_(context),
        options_(context.options),
        inputs_(inputs),
        pacer_(
            options_.in_flight,
            options_.requests_per_second.has_value()
                ? ArrivalsAtRate(*options_.requests_per_second, options_.seed)
                : nullptr) {}

  LoadReport Execute();

 private:
  // The calls of a run are those before the window and those in it.
  struct Start {
    LoadPacer::Call call;
    // For a batch: its first request, and their number.
    uint64_t first_index = 0;
    uint64_t count = 1;
  };

  std::optional<Start> Take(uint64_t now_ns)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the warm-up with this call if it is time.
  void MaybeBeginWindow(const LoadPacer::Call& call, uint64_t now_ns)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the end of the duration; nullopt if it is not known.
  std::optional<uint64_t> EndOfTimeNs() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Starts no more calls; arrivals due by then that were not started count as
  // unanswered.
  void Stop(LoadEnd end, uint64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns why calls in flight must be cancelled; nullopt if they may finish.
  std::optional<LoadEnd> WhyCancel(uint64_t now_ns) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  bool WasInterrupted() const {
    return inputs_.interrupt != nullptr && *inputs_.interrupt;
  }

  void Begin(const Start& start);
  // Called when a call has ended; starts its successor.
  void OnCallEnd() ABSL_LOCKS_EXCLUDED(mutex_);
  // Starts all calls that may start, and waits until all have ended.
  void Drive() ABSL_LOCKS_EXCLUDED(mutex_);
  // Cancels calls that have waited for longer than the deadline. Called
  // periodically, by one thread.
  void CancelSilent(uint64_t now_ns);

  LoadContext& context_;
  const LoadOptions& options_;
  const LoadInputs& inputs_;

  Mutex mutex_;
  // Signals that a call has ended, or no more will start.
  CondVar changed_;
  LoadPacer pacer_ ABSL_GUARDED_BY(mutex_);
  // The first call of the window, and the start of the window.
  std::optional<LoadPacer::Call> window_ ABSL_GUARDED_BY(mutex_);
  double cpu_at_window_seconds_ ABSL_GUARDED_BY(mutex_) = 0;
  LoadEnd end_ ABSL_GUARDED_BY(mutex_) = LoadEnd::kRequests;
  uint64_t last_end_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t started_request_count_ ABSL_GUARDED_BY(mutex_) = 0;
  // Used by the thread that started the run.
  uint64_t next_look_ns_ = 0;
};

std::optional<uint64_t> Run::EndOfTimeNs() const {
  return window_.has_value() && options_.duration.has_value()
             ? std::optional(window_->due_ns + ToNs(*options_.duration))
             : std::nullopt;
}

void Run::Stop(LoadEnd end, uint64_t now_ns) {
  if (!pacer_.is_over()) {
    end_ = end;
  }
  pacer_.Stop(now_ns, [&](uint64_t due_ns) {
    context_.recorder.AddLowerBound(due_ns, now_ns);
  });
}

std::optional<LoadEnd> Run::WhyCancel(uint64_t now_ns) const {
  if (WasInterrupted()) {
    return LoadEnd::kInterrupt;
  }
  if (context_.is_silent) {
    return LoadEnd::kSilence;
  }
  // Single requests were made in time and get their answers. Streams may take
  // arbitrarily long, so they end with the run.
  const uint64_t grace_ns =
      options_.mode == LoadMode::kRandom ? ToNs(options_.deadline) : 0;
  const std::optional<uint64_t> end_ns = EndOfTimeNs();
  return end_ns.has_value() && now_ns >= *end_ns + grace_ns
             ? std::optional(LoadEnd::kDuration)
             : std::nullopt;
}

void Run::CancelSilent(uint64_t now_ns) {
  const uint64_t deadline_ns = ToNs(options_.deadline);
  if (now_ns >= next_look_ns_ && now_ns > deadline_ns) {
    // With many calls in flight each check takes a while.
    next_look_ns_ = now_ns + std::max(kTickNs, deadline_ns / 64);
    context_.open_calls.CancelSilent(now_ns - deadline_ns);
  }
}

void Run::MaybeBeginWindow(const LoadPacer::Call& call, uint64_t now_ns) {
  if (window_.has_value() || now_ns < ToNs(options_.warmup)) {
    return;
  }
  window_ = call;
  if (options_.request_count.has_value() && options_.mode != LoadMode::kFull) {
    const uint64_t per_call = options_.requests_per_call();
    pacer_.EndAt(call.index +
                 (*options_.request_count + per_call - 1) / per_call);
  }
  cpu_at_window_seconds_ = OwnCpuSeconds();
  context_.recorder.BeginWindow(call.due_ns);
  if (inputs_.on_window) {
    inputs_.on_window();
  }
}

std::optional<Run::Start> Run::Take(uint64_t now_ns) {
  if (context_.is_silent) {
    Stop(LoadEnd::kSilence, now_ns);
  }
  if (const std::optional<uint64_t> end_ns = EndOfTimeNs();
      end_ns.has_value() && now_ns >= *end_ns) {
    Stop(LoadEnd::kDuration, *end_ns);
  }
  const std::optional<LoadPacer::Call> call = pacer_.Take(now_ns);
  if (!call.has_value()) {
    return std::nullopt;
  }
  MaybeBeginWindow(*call, now_ns);
  const uint64_t per_call = options_.requests_per_call();
  Start start{
      .call = *call, .first_index = call->index * per_call, .count = per_call};
  if (window_.has_value() && options_.request_count.has_value() &&
      options_.mode == LoadMode::kBatch) {
    const uint64_t end = window_->index * per_call + *options_.request_count;
    start.count = std::min(start.count, end - start.first_index);
  }
  started_request_count_ = start.first_index + start.count;
  return start;
}

void Run::Begin(const Start& start) {
  LoadCall call{.index = start.call.index,
                .due_ns = start.call.due_ns,
                .done = [this] { OnCallEnd(); }};
  switch (options_.mode) {
    case LoadMode::kRandom:
      call.target = context_.targets->At(call.index);
      StartLoadRead(context_, std::move(call));
      break;
    case LoadMode::kBatch:
      StartLoadBatch(context_, start.first_index, start.count, std::move(call));
      break;
    case LoadMode::kFull:
      StartLoadScan(context_, start.call.index % options_.in_flight,
                    options_.in_flight, std::move(call));
      break;
  }
}

void Run::OnCallEnd() {
  std::optional<Start> next;
  {
    MutexLock lock(&mutex_);
    const uint64_t now_ns = context_.NowNs();
    last_end_ns_ = std::max(last_end_ns_, now_ns);
    pacer_.Finish(now_ns);
    next = Take(now_ns);
    if (!next.has_value()) {
      // Under the lock: the run may be destroyed after the last call.
      changed_.NotifyAll();
    }
  }
  if (next.has_value()) {
    Begin(*next);
  }
}

void Run::Drive() {
  for (bool is_cancelled = false;;) {
    CancelSilent(context_.NowNs());
    std::optional<Start> start;
    {
      MutexLock lock(&mutex_);
      const uint64_t now_ns = context_.NowNs();
      if (WasInterrupted()) {
        Stop(LoadEnd::kInterrupt, now_ns);
      }
      start = Take(now_ns);
      if (!start.has_value()) {
        if (pacer_.is_over() && pacer_.outstanding_count() == 0) {
          return;
        }
        const std::optional<LoadEnd> end = pacer_.is_over() && !is_cancelled
                                               ? WhyCancel(now_ns)
                                               : std::nullopt;
        if (!end.has_value()) {
          const uint64_t due_ns = pacer_.NextDueNs().value_or(now_ns + kTickNs);
          const uint64_t wait_ns =
              std::min(due_ns - std::min(now_ns, due_ns), kTickNs);
          changed_.WaitFor(&mutex_, std::chrono::nanoseconds(wait_ns));
          continue;
        }
        end_ = *end;
      }
    }
    if (start.has_value()) {
      Begin(*start);
    } else {
      is_cancelled = true;
      context_.open_calls.CancelAll();
    }
  }
}

LoadReport Run::Execute() {
  {
    MutexLock lock(&mutex_);
    if (options_.mode == LoadMode::kFull && !options_.duration.has_value()) {
      pacer_.EndAt(options_.in_flight);
    }
  }
  Drive();
  MutexLock lock(&mutex_);
  LoadReport report = context_.recorder.Finish(last_end_ns_);
  // The last calls may have been the silent ones.
  report.end = context_.is_silent && end_ == LoadEnd::kRequests
                   ? LoadEnd::kSilence
                   : end_;
  report.started_count = started_request_count_;
  report.held_count = pacer_.held_count();
  report.late_count = pacer_.late_count();
  report.unstarted_count = pacer_.unstarted_count();
  if (window_.has_value()) {
    report.own_cpu_seconds = OwnCpuSeconds() - cpu_at_window_seconds_;
  }
  return report;
}

// A limit of zero would prevent progress.
absl::Status CheckLimits(const v1::Limits& limits) {
  for (const auto& [name, limit] :
       {std::pair("read_size_bytes_max", limits.read_size_bytes_max()),
        std::pair("batch_message_items_max",
                  limits.batch_message_items_max())}) {
    if (limit == 0) {
      return absl::InternalError(absl::StrCat(
          "the server states a limit of zero, ", name,
          ", and no run is possible with it; is it a Quire server?"));
    }
  }
  return absl::OkStatus();
}

// Requests the archive's description, and checks that the run is possible.
absl::StatusOr<v1::GetArchiveResponse> Describe(const LoadInputs& inputs,
                                                const LoadOptions& options) {
  grpc::ClientContext context;
  AddArchiveHeader(options.archive, context);
  context.set_deadline(std::chrono::system_clock::now() + kDescribeTimeMax);
  v1::GetArchiveRequest request;
  request.set_archive(options.archive);
  v1::GetArchiveResponse response;
  const grpc::Status status = v1::Archive::NewStub(inputs.channels.front())
                                  ->GetArchive(&context, request, &response);
  if (!status.ok()) {
    return StatusFromGrpc(status);
  }
  QUIRE_RETURN_IF_ERROR(CheckLimits(response.limits()));
  const v1::ArchiveDescription& archive = response.archive();
  if (inputs.source != nullptr &&
      archive.size_bytes() != inputs.source->size_bytes()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "archive '", options.archive, "' has ", archive.size_bytes(),
        " bytes, its source ", inputs.source->size_bytes()));
  }
  if (inputs.source != nullptr && !inputs.source->documents().empty() &&
      archive.document_count() != inputs.source->documents().size()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "archive '", options.archive, "' has ", archive.document_count(),
        " documents, its source ", inputs.source->documents().size()));
  }
  if (archive.size_bytes() == 0 ||
      (options.what == LoadKind::kDocuments && archive.document_count() == 0)) {
    return absl::FailedPreconditionError("the archive has nothing to read");
  }
  if (options.mode != LoadMode::kFull && options.what == LoadKind::kRanges &&
      options.range_size_bytes > archive.size_bytes()) {
    return absl::FailedPreconditionError(
        absl::StrCat("ranges of ", FormatByteSize(options.range_size_bytes),
                     " do not fit into archive '", options.archive,
                     "', which has ", FormatByteSize(archive.size_bytes()),
                     " of text; give a smaller --range-size"));
  }
  return response;
}

}  // namespace

absl::StatusOr<LoadReport> RunLoad(const LoadInputs& inputs,
                                   const LoadOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(const v1::GetArchiveResponse response,
                         Describe(inputs, options));
  const v1::ArchiveDescription& archive = response.archive();
  const LoadTargets targets(options, inputs.source, archive.size_bytes(),
                            archive.document_count());
  std::unique_ptr<LoadTables> tables;
  if (options.encoding != AnswerEncoding::kIdentity) {
    QUIRE_ASSIGN_OR_RETURN(
        tables, LoadTables::Fetch(inputs.channels.front(), archive, options));
  }
  LoadContext context;
  context.options = options;
  for (const std::shared_ptr<grpc::Channel>& channel : inputs.channels) {
    context.stubs.push_back(v1::Archive::NewStub(channel));
  }
  context.source = inputs.source;
  context.targets = &targets;
  context.tables = tables.get();
  context.archive_size_bytes = archive.size_bytes();
  context.limits = response.limits();
  context.started = std::chrono::steady_clock::now();
  LoadReport report = Run(context, inputs).Execute();
  report.archive = archive;
  report.is_compared = inputs.source != nullptr;
  return report;
}

}  // namespace quire
