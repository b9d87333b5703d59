// SPDX-License-Identifier: Apache-2.0
#include "loadtest/api_limit/raw_load.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/client_callback.h"
#include "grpcpp/support/proto_buffer_reader.h"

#include "proto/quire/v1/archive.pb.h"

#include "codecs/base/mutex.h"
#include "loadtest/api_limit/raw_tally.h"

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

// Calls one after the other. Deletes itself after the last one.
class ReadLoop {
 public:
  ReadLoop(RawTally& tally, grpc::GenericStub& stub,
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
      tally_.Answered(1, response_.Length());
    }
    if (tally_.stopped()) {
      RawTally& tally = tally_;
      delete this;
      tally.End();
      return;
    }
    Start();
  }

  RawTally& tally_;
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
  BatchLoop(RawTally& tally, const RawRequests& requests, size_t first,
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
    tally_.Answered(count, response_.Length());
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
    RawTally& tally = tally_;
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

  RawTally& tally_;
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
  RawTally tally(options);
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
  RawTally tally(options);
  std::vector<grpc::GenericStub> stubs = MakeStubs(channels);
  for (size_t i = 0; i < stubs.size(); ++i) {
    const size_t first = i * requests.batches.size() / stubs.size();
    (new BatchLoop(tally, requests, first, options.in_flight / stubs.size()))
        ->Start(stubs[i]);
  }
  return tally.Measure();
}

}  // namespace quire
