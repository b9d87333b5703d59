// SPDX-License-Identifier: Apache-2.0
#include "loadtest/raw_load.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <iterator>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "google/protobuf/io/coded_stream.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/client_callback.h"
#include "grpcpp/support/proto_buffer_reader.h"

#include "proto/quire/v1/archive.pb.h"

#include "codecs/base/mutex.h"

namespace quire {
namespace {

constexpr char kReadMethod[] = "/quire.v1.Archive/Read";
constexpr char kBatchMethod[] = "/quire.v1.Archive/BatchRead";
constexpr uint64_t kSeed = 20261122;
// A call that takes so long ends the run with a fault.
constexpr std::chrono::seconds kDeadline(60);
// Field `results` of BatchReadResponse on the wire.
constexpr uint32_t kResultsTag =
    (v1::BatchReadResponse::kResultsFieldNumber << 3) | 2;

grpc::ByteBuffer Serialise(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

// User and system time of a process; 0 if it is not there.
double CpuSeconds(int pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const size_t name_end = text.rfind(')');
  if (pid == 0 || name_end == std::string::npos) {
    return 0;
  }
  // From the third field of proc(5) on; utime and stime are 14 and 15.
  const std::vector<std::string> fields =
      absl::StrSplit(text.substr(name_end + 2), ' ');
  uint64_t user = 0;
  uint64_t system = 0;
  if (fields.size() < 13 || !absl::SimpleAtoi(fields[11], &user) ||
      !absl::SimpleAtoi(fields[12], &system)) {
    return 0;
  }
  return static_cast<double>(user + system) /
         static_cast<double>(sysconf(_SC_CLK_TCK));
}

// What all calls of a run share.
class Tally {
 public:
  explicit Tally(const RawLoadOptions& options) : options_(options) {}

  const RawLoadOptions& options() const { return options_; }

  bool stopped() const { return stop_.load(std::memory_order_relaxed); }

  void Begin() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    ++open_count_;
  }

  void End() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    --open_count_;
    all_ended_.NotifyAll();
  }

  void Answered(uint64_t count) {
    answer_count_.fetch_add(count, std::memory_order_relaxed);
  }

  void Fault(const std::string& fault) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    // Its loop ends with it, and the rest of the run would mean nothing.
    stop_ = true;
    if (++report_.fault_count == 1) {
      report_.fault = fault;
    }
  }

  // Lets the calls run for their time, then end.
  RawLoadReport Measure() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::SleepFor(options_.warm_up);
    const uint64_t count_before = answer_count_;
    const double cpu_before = CpuSeconds(options_.server_pid);
    const absl::Time started = absl::Now();
    // On a machine that is busy elsewhere no answer may come within the time.
    do {
      absl::SleepFor(options_.duration);
    } while (answer_count_ == count_before && !stopped());
    const uint64_t count_after = answer_count_;
    const double cpu_after = CpuSeconds(options_.server_pid);
    const double seconds = absl::ToDoubleSeconds(absl::Now() - started);
    stop_ = true;
    MutexLock lock(&mutex_);
    while (open_count_ > 0) {
      all_ended_.Wait(&mutex_);
    }
    report_.answer_count = count_after - count_before;
    report_.server_cpu_seconds = cpu_after - cpu_before;
    report_.seconds = seconds;
    return report_;
  }

 private:
  const RawLoadOptions options_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> answer_count_{0};
  Mutex mutex_;
  CondVar all_ended_;
  size_t open_count_ ABSL_GUARDED_BY(mutex_) = 0;
  RawLoadReport report_ ABSL_GUARDED_BY(mutex_);
};

// Calls one after the other. Deletes itself after the last one.
class ReadLoop {
 public:
  ReadLoop(Tally& tally, grpc::GenericStub& stub,
           const std::vector<grpc::ByteBuffer>& requests, size_t first)
      : tally_(tally), stub_(stub), requests_(requests), next_(first) {
    tally_.Begin();
  }

  void Start() {
    context_ = std::make_unique<grpc::ClientContext>();
    context_->set_deadline(std::chrono::system_clock::now() + kDeadline);
    response_.Clear();
    stub_.UnaryCall(context_.get(), kReadMethod, {},
                    &requests_[next_++ % requests_.size()], &response_,
                    [this](const grpc::Status& status) { OnDone(status); });
  }

 private:
  void OnDone(const grpc::Status& status) {
    if (!status.ok()) {
      tally_.Fault(absl::StrCat("Read: code ", status.error_code(), ", ",
                                status.error_message()));
    } else if (response_.Length() < tally_.options().range_size_bytes) {
      tally_.Fault(absl::StrCat("Read: ", response_.Length(), " bytes"));
    } else {
      tally_.Answered(1);
    }
    if (tally_.stopped()) {
      Tally& tally = tally_;
      delete this;
      tally.End();
      return;
    }
    Start();
  }

  Tally& tally_;
  grpc::GenericStub& stub_;
  const std::vector<grpc::ByteBuffer>& requests_;
  size_t next_;
  std::unique_ptr<grpc::ClientContext> context_;
  grpc::ByteBuffer response_;
};

// A stream with a bounded number of items on their way. Deletes itself.
class BatchLoop
    : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  BatchLoop(Tally& tally, const RawRequests& requests, size_t first,
            size_t items_max)
      : tally_(tally), requests_(requests), items_max_(items_max) {
    tally_.Begin();
    next_ = first;
  }

  void Start(grpc::GenericStub& stub) {
    context_.set_deadline(std::chrono::system_clock::now() + kDeadline);
    stub.PrepareBidiStreamingCall(&context_, kBatchMethod, {}, this);
    StartRead(&response_);
    WriteIfRoom(/*answered_count=*/0, /*write_ended=*/true);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      return;
    }
    const size_t count = CountResults();
    tally_.Answered(count);
    response_.Clear();
    StartRead(&response_);
    WriteIfRoom(count, /*write_ended=*/false);
  }

  void OnWriteDone(bool ok) override {
    if (ok) {
      WriteIfRoom(/*answered_count=*/0, /*write_ended=*/true);
    }
  }

  void OnDone(const grpc::Status& status) override {
    if (!status.ok()) {
      tally_.Fault(absl::StrCat("BatchRead: code ", status.error_code(), ", ",
                                status.error_message()));
    }
    Tally& tally = tally_;
    delete this;
    tally.End();
  }

 private:
  void WriteIfRoom(size_t answered_count, bool write_ended) {
    const grpc::ByteBuffer* request = nullptr;
    bool closes = false;
    {
      MutexLock lock(&mutex_);
      unanswered_count_ -= answered_count;
      writing_ &= !write_ended;
      if (writing_ || closed_) {
        return;
      }
      if (tally_.stopped()) {
        closed_ = closes = true;
      } else if (unanswered_count_ + requests_.batch_items <= items_max_) {
        unanswered_count_ += requests_.batch_items;
        writing_ = true;
        request = &requests_.batches[next_++ % requests_.batches.size()];
      }
    }
    if (request != nullptr) {
      StartWrite(request);
    } else if (closes) {
      StartWritesDone();
    }
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
      if (size_bytes < tally_.options().range_size_bytes) {
        tally_.Fault(
            absl::StrCat("BatchRead: a result of ", size_bytes, " bytes"));
      }
    }
    return count;
  }

  Tally& tally_;
  const RawRequests& requests_;
  const size_t items_max_;
  grpc::ClientContext context_;
  grpc::ByteBuffer response_;
  Mutex mutex_;
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t unanswered_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = true;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

using Channels = std::vector<std::shared_ptr<grpc::Channel>>;

std::vector<grpc::GenericStub> MakeStubs(const Channels& channels) {
  std::vector<grpc::GenericStub> stubs;
  for (const std::shared_ptr<grpc::Channel>& channel : channels) {
    stubs.emplace_back(channel);
  }
  return stubs;
}

}  // namespace

RawRequests MakeRawRequests(const std::string& archive,
                            uint64_t text_size_bytes, uint64_t range_size_bytes,
                            size_t count, size_t batch_items) {
  std::mt19937_64 random(kSeed);
  RawRequests requests{.reads = {}, .batches = {}, .batch_items = batch_items};
  const auto draw = [&](v1::ByteRange* range) {
    range->set_offset(random() % (text_size_bytes - range_size_bytes + 1));
    range->set_size_bytes(range_size_bytes);
  };
  for (size_t i = 0; i < count; ++i) {
    v1::ReadRequest read;
    read.set_archive(archive);
    draw(read.mutable_range());
    requests.reads.push_back(Serialise(read));
  }
  for (size_t i = 0; i < count; i += batch_items) {
    v1::BatchReadRequest batch;
    batch.set_archive(archive);
    for (size_t j = 0; j < batch_items; ++j) {
      v1::BatchItem* item = batch.add_items();
      item->set_tag(i + j);
      draw(item->mutable_range());
    }
    requests.batches.push_back(Serialise(batch));
  }
  return requests;
}

RawLoadReport RunRawReads(const Channels& channels, const RawRequests& requests,
                          const RawLoadOptions& options) {
  Tally tally(options);
  std::vector<grpc::GenericStub> stubs = MakeStubs(channels);
  for (size_t i = 0; i < options.in_flight; ++i) {
    const size_t first = i * requests.reads.size() / options.in_flight;
    (new ReadLoop(tally, stubs[i % stubs.size()], requests.reads, first))
        ->Start();
  }
  return tally.Measure();
}

RawLoadReport RunRawBatches(const Channels& channels,
                            const RawRequests& requests,
                            const RawLoadOptions& options) {
  Tally tally(options);
  std::vector<grpc::GenericStub> stubs = MakeStubs(channels);
  for (size_t i = 0; i < stubs.size(); ++i) {
    const size_t first = i * requests.batches.size() / stubs.size();
    (new BatchLoop(tally, requests, first, options.in_flight / stubs.size()))
        ->Start(stubs[i]);
  }
  return tally.Measure();
}

}  // namespace quire
