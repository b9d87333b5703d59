// SPDX-License-Identifier: Apache-2.0
#include "loadtest/api_limit/raw_stream.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/client_callback.h"

#include "proto/quire/v1/archive.pb.h"

#include "codecs/base/mutex.h"

namespace quire {
namespace {

constexpr char kScanMethod[] = "/quire.v1.Archive/Scan";
constexpr char kReadStreamMethod[] = "/quire.v1.Archive/ReadStream";

grpc::ByteBuffer Serialise(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

grpc::ByteBuffer RequestOf(const RawStreamRequest& request) {
  if (request.method == RawStreamMethod::kReadStream) {
    v1::ReadRequest read;
    read.set_archive(request.archive);
    read.mutable_range()->set_size_bytes(request.size_bytes);
    return Serialise(read);
  }
  v1::ScanRequest scan;
  scan.set_archive(request.archive);
  scan.set_size_bytes(request.size_bytes);
  return Serialise(scan);
}

// The streams of one channel, one after the other.
class StreamLoop {
 public:
  StreamLoop(RawTally& tally, const std::shared_ptr<grpc::Channel>& channel,
             const RawStreamRequest& request)
      : tally_(tally),
        stub_(channel),
        method_(request.method == RawStreamMethod::kScan ? kScanMethod
                                                         : kReadStreamMethod),
        request_(RequestOf(request)) {
    tally_.Begin();
  }

  void Start() { (new Stream(*this))->Start(); }

  // Ends the stream that runs.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (running_ != nullptr) {
      running_->TryCancel();
    }
  }

 private:
  // Deletes itself.
  class Stream
      : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
   public:
    explicit Stream(StreamLoop& loop) : loop_(loop) {}

    void Start() {
      loop_.SetRunning(&context_);
      loop_.stub_.PrepareBidiStreamingCall(&context_, loop_.method_, {}, this);
      StartWriteLast(&loop_.request_, {});
      StartRead(&response_);
      StartCall();
    }

    void OnReadDone(bool ok) override {
      if (ok) {
        loop_.tally_.Answered(1, response_.Length());
        response_.Clear();
        StartRead(&response_);
      }
    }

    void OnDone(const grpc::Status& status) override {
      StreamLoop& loop = loop_;
      loop.SetRunning(nullptr);
      delete this;
      loop.OnStreamDone(status);
    }

   private:
    StreamLoop& loop_;
    grpc::ClientContext context_;
    grpc::ByteBuffer response_;
  };

  void SetRunning(grpc::ClientContext* context) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    running_ = context;
    if (context != nullptr && tally_.stopped()) {
      context->TryCancel();
    }
  }

  void OnStreamDone(const grpc::Status& status) {
    if (!status.ok() && !tally_.stopped()) {
      tally_.Fault(absl::StrCat(method_, ": code ", status.error_code(), ", ",
                                status.error_message()));
    }
    if (tally_.stopped()) {
      tally_.End();
      return;
    }
    Start();
  }

  RawTally& tally_;
  grpc::GenericStub stub_;
  const std::string method_;
  const grpc::ByteBuffer request_;
  Mutex mutex_;
  grpc::ClientContext* running_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace

RawLoadReport RunRawStreams(
    const std::vector<std::shared_ptr<grpc::Channel>>& channels,
    const RawStreamRequest& request, const RawLoadOptions& options) {
  RawTally tally(options);
  std::vector<std::unique_ptr<StreamLoop>> loops;
  for (const std::shared_ptr<grpc::Channel>& channel : channels) {
    loops.push_back(std::make_unique<StreamLoop>(tally, channel, request));
    loops.back()->Start();
  }
  return tally.Measure([&] {
    for (const std::unique_ptr<StreamLoop>& loop : loops) {
      loop->Cancel();
    }
  });
}

}  // namespace quire
