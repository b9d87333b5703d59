// SPDX-License-Identifier: Apache-2.0
#include "loadtest/api_limit/empty_service.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"

#include "proto/quire/v1/archive.grpc.pb.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/mutex.h"

namespace quire {
namespace {

constexpr uint64_t kMessageSizeBytesMax = 64 << 20;
constexpr size_t kSliceSizeBytes = 64 << 10;

grpc::ByteBuffer Serialise(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

// In slices as long as blocks are: a stream's messages are made of those.
grpc::ByteBuffer SerialiseInPieces(
    const google::protobuf::MessageLite& message) {
  const std::string bytes = message.SerializeAsString();
  std::vector<grpc::Slice> slices;
  for (size_t i = 0; i < bytes.size(); i += kSliceSizeBytes) {
    slices.emplace_back(bytes.substr(i, kSliceSizeBytes));
  }
  return {slices.data(), slices.size()};
}

template <typename Message>
void FillIn(uint32_t size_bytes, Message& message) {
  message.mutable_range()->set_offset(uint64_t{1} << 32);
  message.mutable_range()->set_size_bytes(size_bytes);
  message.set_encoding(v1::WIRE_ENCODING_IDENTITY);
  message.mutable_data()->assign(size_bytes, 'x');
  message.set_checksum(Checksum64(AsBytes(absl::string_view(message.data()))));
}

class EmptyRead : public grpc::ServerUnaryReactor {
 public:
  EmptyRead() { Finish(grpc::Status::OK); }

  void OnDone() override { delete this; }
};

// Answers each message as if it had the same number of items.
class EmptyBatch
    : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  EmptyBatch(const grpc::ByteBuffer& answer, uint32_t answers_per_message)
      : answer_(answer), answers_per_message_(answers_per_message) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    bool starts_write = false;
    bool is_over = false;
    {
      MutexLock lock(&mutex_);
      closed_ |= !ok;
      starts_write = ok && owed_count_ == 0;
      owed_count_ += ok ? answers_per_message_ : 0;
      is_over = closed_ && owed_count_ == 0;
    }
    if (starts_write) {
      StartWrite(&answer_);
    }
    if (ok) {
      StartRead(&request_);
    }
    if (is_over) {
      Finish(grpc::Status::OK);
    }
  }

  void OnWriteDone(bool ok) override {
    bool is_over = false;
    bool goes_on = false;
    {
      MutexLock lock(&mutex_);
      // Of a broken stream, OnReadDone() comes to know as well.
      owed_count_ = ok ? owed_count_ - 1 : 0;
      goes_on = owed_count_ > 0;
      is_over = closed_ && !goes_on;
    }
    if (goes_on) {
      StartWrite(&answer_);
    } else if (is_over) {
      Finish(grpc::Status::OK);
    }
  }

  void OnDone() override { delete this; }

 private:
  const grpc::ByteBuffer answer_;
  const uint32_t answers_per_message_;
  grpc::ByteBuffer request_;
  Mutex mutex_;
  // Including the one being written.
  uint32_t owed_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

// The same message over and over, until the client has had enough.
class EmptyStream : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  explicit EmptyStream(const grpc::ByteBuffer& message) : message_(message) {
    StartWrite(&message_);
  }

  void OnWriteDone(bool ok) override {
    if (ok) {
      StartWrite(&message_);
    } else {
      Finish(grpc::Status::CANCELLED);
    }
  }

  void OnDone() override { delete this; }

 private:
  const grpc::ByteBuffer message_;
};

using RawMethods = v1::Archive::WithRawCallbackMethod_Read<
    v1::Archive::WithRawCallbackMethod_BatchRead<
        v1::Archive::WithRawCallbackMethod_Scan<v1::Archive::Service>>>;

class EmptyService : public RawMethods {
 public:
  explicit EmptyService(const EmptyAnswers& answers)
      : answers_per_message_(answers.batch_items / answers.batch_results) {
    v1::ReadResponse read;
    FillIn(answers.size_bytes, read);
    read_answer_ = Serialise(read);
    v1::BatchReadResponse batch;
    for (uint32_t i = 0; i < answers.batch_results; ++i) {
      v1::BatchResult* result = batch.add_results();
      result->set_tag(i);
      FillIn(answers.size_bytes, *result);
    }
    batch_answer_ = Serialise(batch);
  }

  grpc::ServerUnaryReactor* Read(grpc::CallbackServerContext* /*context*/,
                                 const grpc::ByteBuffer* /*request*/,
                                 grpc::ByteBuffer* response) override {
    *response = read_answer_;
    return new EmptyRead;
  }

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* BatchRead(
      grpc::CallbackServerContext* /*context*/) override {
    return new EmptyBatch(batch_answer_, answers_per_message_);
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Scan(
      grpc::CallbackServerContext* /*context*/,
      const grpc::ByteBuffer* request) override {
    grpc::ByteBuffer copy = *request;
    v1::ScanRequest scan;
    const grpc::Status parsed =
        grpc::SerializationTraits<v1::ScanRequest>::Deserialize(&copy, &scan);
    v1::ScanResponse message;
    if (parsed.ok()) {
      FillIn(static_cast<uint32_t>(
                 std::min(scan.size_bytes(), kMessageSizeBytesMax)),
             message);
    }
    return new EmptyStream(SerialiseInPieces(message));
  }

 private:
  const uint32_t answers_per_message_;
  grpc::ByteBuffer read_answer_;
  grpc::ByteBuffer batch_answer_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeEmptyService(const EmptyAnswers& answers) {
  return std::make_unique<EmptyService>(answers);
}

}  // namespace quire
