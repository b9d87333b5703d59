// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/calls/request_parser.h"

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "grpcpp/support/slice.h"

#include "proto/message_bounds.h"

#include "codecs/base/status_macros.h"
#include "server/service/base/service_error.h"

namespace quire {
namespace {

constexpr size_t kOnePieceSizeBytesMax = 64 << 10;
// A short item counts as if it had the maximum number of fields.
static_assert(kUncountedFieldsMax == kItemFieldsMax);

absl::Status Malformed() {
  return ServiceError(absl::StatusCode::kInvalidArgument, v1::MALFORMED_REQUEST,
                      "the request is not a valid protobuf message of its "
                      "method's type");
}

absl::Status Explain(BoundsCheck check, const MessageBounds& bounds) {
  switch (check) {
    case BoundsCheck::kWithin:
      return absl::OkStatus();
    case BoundsCheck::kTooManyFields:
      return ServiceError(
          absl::StatusCode::kInvalidArgument, v1::MALFORMED_REQUEST,
          absl::StrCat("the request has more than ", bounds.fields_max,
                       " fields and values, more than any needs; leave out "
                       "those that the server does not know"));
    case BoundsCheck::kTooManyItems:
      return ServiceError(
          absl::StatusCode::kInvalidArgument, v1::LIMIT_EXCEEDED,
          absl::StrCat("items: a message has more than batch_message_items_max,"
                       " ",
                       bounds.items_max, "; spread them over several messages"),
          {{"limit", "batch_message_items_max"}});
    case BoundsCheck::kMalformed:
      break;
  }
  return Malformed();
}

absl::Status ParseFrom(google::protobuf::io::ZeroCopyInputStream& in,
                       google::protobuf::Message& message) {
  return message.ParseFromZeroCopyStream(&in) ? absl::OkStatus() : Malformed();
}

absl::Status ParseWithin(const grpc::ByteBuffer& buffer,
                         const MessageBounds& bounds,
                         google::protobuf::Message& message) {
  const bool is_counted = buffer.Length() >= kCountedRequestSizeBytesMin;
  // A short request in one piece saves a copy of the buffer.
  grpc::Slice slice;
  if (buffer.Length() <= kOnePieceSizeBytesMax &&
      buffer.TrySingleSlice(&slice).ok()) {
    const auto size = static_cast<int>(slice.size());
    if (is_counted) {
      google::protobuf::io::ArrayInputStream counted(slice.begin(), size);
      QUIRE_RETURN_IF_ERROR(Explain(
          CheckBounds(counted, bounds, *message.GetDescriptor()), bounds));
    }
    return message.ParseFromArray(slice.begin(), size) ? absl::OkStatus()
                                                       : Malformed();
  }
  if (is_counted) {
    grpc::ByteBuffer readable(buffer);
    grpc::ProtoBufferReader reader(&readable);
    QUIRE_RETURN_IF_ERROR(reader.status().ok() ? absl::OkStatus()
                                               : Malformed());
    QUIRE_RETURN_IF_ERROR(
        Explain(CheckBounds(reader, bounds, *message.GetDescriptor()), bounds));
  }
  grpc::ByteBuffer readable(buffer);
  grpc::ProtoBufferReader reader(&readable);
  return reader.status().ok() ? ParseFrom(reader, message) : Malformed();
}

}  // namespace

absl::Status ParseRequest(const grpc::ByteBuffer& buffer,
                          google::protobuf::Message& message) {
  if (buffer.Length() > kSingleRequestSizeBytesMax) {
    return ServiceError(
        absl::StatusCode::kInvalidArgument, v1::MALFORMED_REQUEST,
        absl::StrCat("the request has ", buffer.Length(), " bytes, more than ",
                     kSingleRequestSizeBytesMax,
                     "; name documents with long ids by their ordinals"));
  }
  return ParseWithin(buffer, {.fields_max = kRequestFieldsMax}, message);
}

absl::Status ParseBatchRequest(const grpc::ByteBuffer& buffer,
                               uint64_t items_max,
                               v1::BatchReadRequest& request) {
  // Tag and size of each item count as a field of the message.
  return ParseWithin(
      buffer,
      {.fields_max = kRequestFieldsMax + (kItemFieldsMax + 1) * items_max,
       .items_field_number = v1::BatchReadRequest::kItemsFieldNumber,
       .items_max = items_max},
      request);
}

}  // namespace quire
