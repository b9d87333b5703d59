// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/call_context.h"

#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/proto_buffer_reader.h"

#include "server/service/service_error.h"

namespace quire {

absl::Status ParseRequest(const grpc::ByteBuffer& buffer,
                          google::protobuf::MessageLite& message) {
  grpc::ByteBuffer readable(buffer);
  grpc::ProtoBufferReader reader(&readable);
  if (!reader.status().ok() || !message.ParseFromZeroCopyStream(&reader)) {
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
