// SPDX-License-Identifier: Apache-2.0
//
// empty_server: the Archive service over a text of one range, which it answers
// from a static buffer: the upper bound that gRPC alone sets. Scans repeat that
// range to the end of a longer text. quire-loadtest loads it like quired and
// checks its answers. Prints its address and serves until standard input ends.
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"

#include "proto/quire/v1/archive.grpc.pb.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/number_range.h"
#include "codecs/base/program_main.h"
#include "codecs/base/varint.h"

namespace quire {
namespace {

constexpr uint64_t kMessageItemsMax = 64;
constexpr int kMessageResultsMax = 32;

// Returns the tag of a field of wire type 2 (length-delimited).
constexpr char TagOf(int field_number) {
  return static_cast<char>((field_number << 3) | 2);
}

// Returns an answer without its data.
template <typename Message>
Message Head(uint32_t size_bytes, uint64_t checksum) {
  Message message;
  message.mutable_range()->set_offset(0);
  message.mutable_range()->set_size_bytes(size_bytes);
  message.set_encoding(v1::WIRE_ENCODING_IDENTITY);
  message.set_checksum(checksum);
  return message;
}

class EmptyRead : public grpc::ServerUnaryReactor {
 public:
  EmptyRead() { Finish(grpc::Status::OK); }

  void OnDone() override { delete this; }
};

constexpr uint64_t kEndlessRanges = uint64_t{1} << 40;

// State that all answers share. Immutable.
struct StaticAnswer {
  grpc::Slice data;
  uint64_t checksum = 0;
};

// Answers the items of one message in order, all with the same bytes.
class EmptyBatch
    : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit EmptyBatch(const StaticAnswer& answer) : answer_(answer) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      Finish(grpc::Status::OK);
      return;
    }
    items_.Clear();
    next_item_ = 0;
    if (!grpc::SerializationTraits<v1::BatchReadRequest>::Deserialize(&request_,
                                                                      &items_)
             .ok()) {
      Finish({grpc::StatusCode::INVALID_ARGUMENT, "not a BatchReadRequest"});
      return;
    }
    GoOn();
  }

  void OnWriteDone(bool ok) override {
    if (ok) {
      GoOn();
    } else {
      Finish(grpc::Status::CANCELLED);
    }
  }

  void OnDone() override { delete this; }

 private:
  // Writes the next results, or reads the next items.
  void GoOn() {
    const int end =
        std::min(items_.items_size(), next_item_ + kMessageResultsMax);
    if (next_item_ == end) {
      StartRead(&request_);
      return;
    }
    auto result = Head<v1::BatchResult>(
        static_cast<uint32_t>(answer_.data.size()), answer_.checksum);
    std::vector<grpc::Slice> slices;
    for (; next_item_ < end; ++next_item_) {
      result.set_tag(items_.items(next_item_).tag());
      // The data is the last field of the result.
      std::string fields = result.SerializeAsString();
      fields += TagOf(v1::BatchResult::kDataFieldNumber);
      AppendVarint(answer_.data.size(), fields);
      std::string head(1, TagOf(v1::BatchReadResponse::kResultsFieldNumber));
      AppendVarint(fields.size() + answer_.data.size(), head);
      slices.emplace_back(head + fields);
      slices.push_back(answer_.data);
    }
    response_ = grpc::ByteBuffer(slices.data(), slices.size());
    StartWrite(&response_);
  }

  const StaticAnswer& answer_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
  v1::BatchReadRequest items_;
  int next_item_ = 0;
};

// Sends a part of the text in messages of one range each, all with the same
// bytes.
class EmptyScan : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  EmptyScan(const StaticAnswer& answer, const grpc::ByteBuffer& request)
      : answer_(answer) {
    grpc::ByteBuffer readable(request);
    v1::ScanRequest scan;
    if (!grpc::SerializationTraits<v1::ScanRequest>::Deserialize(&readable,
                                                                 &scan)
             .ok() ||
        scan.size_bytes() % answer_.data.size() != 0) {
      Finish({grpc::StatusCode::INVALID_ARGUMENT,
              "not a ScanRequest of whole ranges"});
      return;
    }
    next_offset_ = scan.offset();
    // Without a size, to an end that no client reaches.
    end_offset_ = scan.offset() + (scan.size_bytes() != 0
                                       ? scan.size_bytes()
                                       : kEndlessRanges * answer_.data.size());
    GoOn();
  }

  void OnWriteDone(bool ok) override {
    if (ok) {
      GoOn();
    } else {
      Finish(grpc::Status::CANCELLED);
    }
  }

  void OnDone() override { delete this; }

 private:
  void GoOn() {
    if (next_offset_ == end_offset_) {
      Finish(grpc::Status::OK);
      return;
    }
    auto message = Head<v1::ScanResponse>(
        static_cast<uint32_t>(answer_.data.size()), answer_.checksum);
    message.mutable_range()->set_offset(next_offset_);
    next_offset_ += answer_.data.size();
    // The data is the last field of the message.
    std::string fields = message.SerializeAsString();
    fields += TagOf(v1::ScanResponse::kDataFieldNumber);
    AppendVarint(answer_.data.size(), fields);
    const std::array<grpc::Slice, 2> slices = {grpc::Slice(fields),
                                               answer_.data};
    message_ = grpc::ByteBuffer(slices.data(), slices.size());
    StartWrite(&message_);
  }

  const StaticAnswer& answer_;
  grpc::ByteBuffer message_;
  uint64_t next_offset_ = 0;
  uint64_t end_offset_ = 0;
};

using RawMethods = v1::Archive::WithRawCallbackMethod_Read<
    v1::Archive::WithRawCallbackMethod_BatchRead<
        v1::Archive::WithRawCallbackMethod_Scan<v1::Archive::Service>>>;

// Read, BatchRead and Scan by the API that quired uses for them. Thread-safe.
class EmptyService : public RawMethods {
 public:
  EmptyService(uint32_t size_bytes, uint32_t scan_ranges)
      : size_bytes_(size_bytes), scan_ranges_(scan_ranges) {
    const std::string data(size_bytes, 'x');
    answer_ = {.data = grpc::Slice(data),
               .checksum = Checksum64(AsBytes(data))};
    read_ = Whole<v1::ReadResponse>(data);
  }

  grpc::Status GetArchive(grpc::ServerContext* /*context*/,
                          const v1::GetArchiveRequest* request,
                          v1::GetArchiveResponse* response) override {
    v1::ArchiveDescription* const archive = response->mutable_archive();
    archive->set_name(request->archive());
    archive->set_size_bytes(uint64_t{size_bytes_} * scan_ranges_);
    archive->set_state(v1::ARCHIVE_STATE_OPEN);
    v1::Limits* const limits = response->mutable_limits();
    limits->set_read_size_bytes_max(size_bytes_);
    limits->set_chunk_size_bytes_max(size_bytes_);
    limits->set_batch_message_items_max(kMessageItemsMax);
    limits->set_batch_pending_items_max(1024);
    return grpc::Status::OK;
  }

  grpc::ServerUnaryReactor* Read(grpc::CallbackServerContext* /*context*/,
                                 const grpc::ByteBuffer* /*request*/,
                                 grpc::ByteBuffer* response) override {
    *response = read_;
    return new EmptyRead;
  }

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* BatchRead(
      grpc::CallbackServerContext* /*context*/) override {
    return new EmptyBatch(answer_);
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Scan(
      grpc::CallbackServerContext* /*context*/,
      const grpc::ByteBuffer* request) override {
    return new EmptyScan(answer_, *request);
  }

 private:
  template <typename Message>
  grpc::ByteBuffer Whole(const std::string& data) const {
    auto message = Head<Message>(size_bytes_, answer_.checksum);
    message.set_data(data);
    const grpc::Slice slice(message.SerializeAsString());
    return {&slice, 1};
  }

  const uint32_t size_bytes_;
  // Length of the text in ranges.
  const uint32_t scan_ranges_;
  StaticAnswer answer_;
  grpc::ByteBuffer read_;
};

// Keeps freed memory for later allocations, like quired.
// REQUIRES: no other thread has been started.
void KeepMemory() {
  // NOLINTBEGIN(concurrency-mt-unsafe)
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  mallopt(M_ARENA_MAX, 2);
  // NOLINTEND(concurrency-mt-unsafe)
}

// Applies the settings of quired (server/service/grpc_front.cc), some of which
// slow each call.
void SetAsQuired(grpc::ServerBuilder& builder) {
  grpc::EnableDefaultHealthCheckService(true);
  builder.SetMaxReceiveMessageSize(2 << 20);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, 10 * 60 * 1000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 256);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60 * 1000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20 * 1000);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10 * 1000);
}

int Serve(uint32_t range_size_bytes, uint32_t scan_ranges) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  KeepMemory();
  EmptyService service(range_size_bytes, scan_ranges);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  SetAsQuired(builder);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    std::cerr << "empty_server: cannot listen on 127.0.0.1\n";
    return 1;
  }
  absl::PrintF("127.0.0.1:%d\n", port);
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  server->Shutdown();
  return 0;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  uint32_t range_size_bytes = 16 << 10;
  uint32_t scan_ranges = 1;
  return quire::RunProgram(
      "empty_server", "an Archive service that reads nothing", 1,
      [&](CLI::App& app) {
        app.add_option("--range-size", range_size_bytes, "Bytes of an answer")
            ->check(quire::CountInRange(1, 64 << 20))
            ->capture_default_str();
        app.add_option("--scan-ranges", scan_ranges,
                       "Length of the text in answers, for scans alone")
            ->check(quire::CountInRange(1, 1 << 20))
            ->capture_default_str();
        app.parse(argc, argv);
        return quire::Serve(range_size_bytes, scan_ranges);
      });
}
