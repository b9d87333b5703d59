// SPDX-License-Identifier: Apache-2.0
#include "loadtest/api_limit/raw_load.h"

#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <random>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/protobuf/io/coded_stream.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/client_callback.h"
#include "grpcpp/support/proto_buffer_reader.h"

#include "proto/quire/v1/archive.pb.h"

#include "codecs/base/mutex.h"

namespace quire {
namespace {

constexpr uint64_t kSeed = 20261122;
constexpr size_t kRangesMade = 8192;
constexpr std::chrono::seconds kDeadline(60);
// Field `results` of BatchReadResponse on the wire.
constexpr uint32_t kResultsTag =
    (v1::BatchReadResponse::kResultsFieldNumber << 3) | 2;

grpc::ByteBuffer Serialise(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

// Serialised beforehand; they are sent in turn, again and again.
std::vector<grpc::ByteBuffer> MakeRequests(const RawLoadOptions& options) {
  std::mt19937_64 random(kSeed);
  std::vector<grpc::ByteBuffer> requests;
  const auto draw = [&](v1::ByteRange* range) {
    range->set_offset(random() %
                      (options.text_size_bytes - options.range_size_bytes + 1));
    range->set_size_bytes(options.range_size_bytes);
  };
  if (options.method == RawMethod::kScan) {
    v1::ScanRequest scan;
    scan.set_archive(options.archive);
    scan.set_size_bytes(options.range_size_bytes);
    requests.push_back(Serialise(scan));
  } else if (options.method == RawMethod::kRead) {
    for (size_t i = 0; i < kRangesMade; ++i) {
      v1::ReadRequest read;
      read.set_archive(options.archive);
      draw(read.mutable_range());
      requests.push_back(Serialise(read));
    }
  } else {
    for (size_t i = 0; i < kRangesMade; i += options.batch_items) {
      v1::BatchReadRequest batch;
      batch.set_archive(options.archive);
      for (size_t j = 0; j < options.batch_items; ++j) {
        v1::BatchItem* item = batch.add_items();
        item->set_tag(i + j);
        draw(item->mutable_range());
      }
      requests.push_back(Serialise(batch));
    }
  }
  return requests;
}

// User and system time of a process; 0 if it is not there.
double CpuSeconds(int pid) {
  clockid_t clock = 0;
  timespec time = {};
  if (pid == 0 || clock_getcpuclockid(pid, &clock) != 0 ||
      clock_gettime(clock, &time) != 0) {
    return 0;
  }
  return absl::ToDoubleSeconds(absl::DurationFromTimespec(time));
}

double OwnCpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return absl::ToDoubleSeconds(absl::DurationFromTimeval(usage.ru_utime) +
                               absl::DurationFromTimeval(usage.ru_stime));
}

// What all calls of a run share. Thread-safe.
class Run {
 public:
  explicit Run(const RawLoadOptions& options)
      : options_(options), requests_(MakeRequests(options)) {}

  const RawLoadOptions& options() const { return options_; }

  const grpc::ByteBuffer* NextRequest() {
    return &requests_[next_.fetch_add(1, std::memory_order_relaxed) %
                      requests_.size()];
  }

  // No call should begin any more.
  bool is_over() const { return is_over_.load(std::memory_order_relaxed); }

  // Around each loop of calls.
  void Begin() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    ++open_count_;
  }

  void End() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    --open_count_;
    all_ended_.NotifyAll();
  }

  void CountAnswers(uint64_t count, uint64_t size_bytes) {
    answer_count_.fetch_add(count, std::memory_order_relaxed);
    size_bytes_.fetch_add(size_bytes, std::memory_order_relaxed);
  }

  // Ends the run: the rest of it would mean nothing.
  void Fail(absl::string_view what) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    is_over_ = true;
    fault_.Update(absl::InternalError(what));
  }

  absl::StatusOr<RawLoadReport> Measure() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::SleepFor(options_.warm_up);
    RawLoadReport report{.answer_count = answer_count_,
                         .size_bytes = size_bytes_,
                         .server_cpu_seconds = CpuSeconds(options_.server_pid),
                         .client_cpu_seconds = OwnCpuSeconds()};
    const absl::Time started = absl::Now();
    // On a machine that is busy elsewhere no answer may come within the time.
    do {
      absl::SleepFor(options_.duration);
    } while (answer_count_ == report.answer_count && !is_over());
    report.answer_count = answer_count_ - report.answer_count;
    report.size_bytes = size_bytes_ - report.size_bytes;
    report.server_cpu_seconds =
        CpuSeconds(options_.server_pid) - report.server_cpu_seconds;
    report.client_cpu_seconds = OwnCpuSeconds() - report.client_cpu_seconds;
    report.seconds = absl::ToDoubleSeconds(absl::Now() - started);
    is_over_ = true;
    MutexLock lock(&mutex_);
    while (open_count_ > 0) {
      all_ended_.Wait(&mutex_);
    }
    if (!fault_.ok()) {
      return fault_;
    }
    return report;
  }

 private:
  const RawLoadOptions options_;
  const std::vector<grpc::ByteBuffer> requests_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> is_over_ = false;
  std::atomic<uint64_t> answer_count_ = 0;
  std::atomic<uint64_t> size_bytes_ = 0;
  Mutex mutex_;
  CondVar all_ended_;
  size_t open_count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status fault_ ABSL_GUARDED_BY(mutex_);
};

std::string Describe(const grpc::Status& status) {
  return absl::StrCat("code ", status.error_code(), ", ",
                      status.error_message());
}

// One Read after the other. Deletes itself after the last one.
class ReadLoop {
 public:
  ReadLoop(Run& run, const std::shared_ptr<grpc::Channel>& channel)
      : run_(run), stub_(channel) {
    run_.Begin();
  }

  void Start() {
    context_ = std::make_unique<grpc::ClientContext>();
    context_->set_deadline(std::chrono::system_clock::now() + kDeadline);
    response_.Clear();
    stub_.UnaryCall(context_.get(), "/quire.v1.Archive/Read", {},
                    run_.NextRequest(), &response_,
                    [this](const grpc::Status& status) { OnDone(status); });
  }

 private:
  void OnDone(const grpc::Status& status) {
    if (!status.ok()) {
      run_.Fail(Describe(status));
    } else if (response_.Length() < run_.options().range_size_bytes) {
      run_.Fail(absl::StrCat("an answer of ", response_.Length(), " bytes"));
    } else {
      run_.CountAnswers(1, response_.Length());
    }
    if (!run_.is_over()) {
      Start();
      return;
    }
    Run& run = run_;
    delete this;
    run.End();
  }

  Run& run_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  grpc::ByteBuffer response_;
};

// One stream; a scan is followed by the next. Deletes itself.
class Stream
    : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  // `items_max`: of this stream.
  Stream(Run& run, std::shared_ptr<grpc::Channel> channel, size_t items_max)
      : run_(run),
        channel_(std::move(channel)),
        stub_(channel_),
        is_scan_(run.options().method == RawMethod::kScan),
        items_max_(items_max) {
    run_.Begin();
  }

  void Start() {
    context_.set_deadline(std::chrono::system_clock::now() + kDeadline);
    stub_.PrepareBidiStreamingCall(
        &context_,
        is_scan_ ? "/quire.v1.Archive/Scan" : "/quire.v1.Archive/BatchRead", {},
        this);
    StartRead(&response_);
    if (is_scan_) {
      StartWriteLast(run_.NextRequest(), {});
    } else {
      WriteMore(/*answered_count=*/0, /*write_ended=*/true);
    }
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      return;
    }
    const size_t count = is_scan_ ? 1 : CountResults();
    run_.CountAnswers(count, response_.Length());
    response_.Clear();
    StartRead(&response_);
    if (!is_scan_) {
      WriteMore(count, /*write_ended=*/false);
    } else if (run_.is_over()) {
      context_.TryCancel();
    }
  }

  void OnWriteDone(bool ok) override {
    if (ok && !is_scan_) {
      WriteMore(/*answered_count=*/0, /*write_ended=*/true);
    }
  }

  void OnDone(const grpc::Status& status) override {
    const bool was_cancelled = is_scan_ && run_.is_over();
    if (!status.ok() && !was_cancelled) {
      run_.Fail(Describe(status));
    }
    if (is_scan_ && !run_.is_over()) {
      (new Stream(run_, channel_, items_max_))->Start();
    }
    Run& run = run_;
    delete this;
    run.End();
  }

 private:
  void WriteMore(size_t answered_count, bool write_ended)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    bool closes = false;
    {
      MutexLock lock(&mutex_);
      unanswered_count_ -= answered_count;
      is_writing_ &= !write_ended;
      if (is_writing_ || is_closed_) {
        return;
      }
      closes = is_closed_ = run_.is_over();
      const size_t batch_items = run_.options().batch_items;
      if (!closes) {
        if (unanswered_count_ + batch_items > items_max_) {
          return;
        }
        unanswered_count_ += batch_items;
        is_writing_ = true;
      }
    }
    closes ? StartWritesDone() : StartWrite(run_.NextRequest());
  }

  // Skips through the message without unpacking it.
  size_t CountResults() {
    grpc::ProtoBufferReader reader(&response_);
    google::protobuf::io::CodedInputStream in(&reader);
    size_t count = 0;
    uint32_t size_bytes = 0;
    while (in.ReadTag() == kResultsTag && in.ReadVarint32(&size_bytes) &&
           in.Skip(static_cast<int>(size_bytes))) {
      ++count;
      if (size_bytes < run_.options().range_size_bytes) {
        run_.Fail(absl::StrCat("a result of ", size_bytes, " bytes"));
      }
    }
    return count;
  }

  Run& run_;
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  const bool is_scan_;
  const size_t items_max_;
  grpc::ClientContext context_;
  grpc::ByteBuffer response_;
  Mutex mutex_;
  size_t unanswered_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = true;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

absl::StatusOr<RawLoadReport> RunRawLoad(
    const std::vector<std::shared_ptr<grpc::Channel>>& channels,
    const RawLoadOptions& options) {
  Run run(options);
  if (options.method == RawMethod::kRead) {
    for (size_t i = 0; i < options.in_flight; ++i) {
      (new ReadLoop(run, channels[i % channels.size()]))->Start();
    }
  } else {
    for (const std::shared_ptr<grpc::Channel>& channel : channels) {
      (new Stream(run, channel, options.in_flight / channels.size()))->Start();
    }
  }
  return run.Measure();
}

}  // namespace quire
