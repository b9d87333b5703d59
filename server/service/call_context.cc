// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/call_context.h"

#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "grpcpp/support/slice.h"

#include "server/service/service_error.h"

namespace quire {

namespace {

constexpr size_t kOnePieceSizeBytesMax = 64 << 10;

bool Parses(const grpc::ByteBuffer& buffer,
            google::protobuf::MessageLite& message) {
  // Short requests come in one piece, which saves a copy of the buffer.
  grpc::Slice slice;
  if (buffer.Length() <= kOnePieceSizeBytesMax &&
      buffer.TrySingleSlice(&slice).ok()) {
    return message.ParseFromArray(slice.begin(),
                                  static_cast<int>(slice.size()));
  }
  grpc::ByteBuffer readable(buffer);
  grpc::ProtoBufferReader reader(&readable);
  return reader.status().ok() && message.ParseFromZeroCopyStream(&reader);
}

}  // namespace

absl::Status ParseRequest(const grpc::ByteBuffer& buffer,
                          google::protobuf::MessageLite& message) {
  if (!Parses(buffer, message)) {
    return ServiceError(absl::StatusCode::kInvalidArgument,
                        v1::MALFORMED_REQUEST,
                        "the request is not a valid protobuf message of its "
                        "method's type");
  }
  return absl::OkStatus();
}

absl::Status RefuseIfDraining(const ServiceCore& core) {
  if (core.draining.load(std::memory_order_relaxed)) {
    return ServiceError(absl::StatusCode::kUnavailable, v1::DRAINING,
                        "the server is shutting down");
  }
  return absl::OkStatus();
}

}  // namespace quire
