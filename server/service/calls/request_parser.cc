// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/calls/request_parser.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/wire_format_lite.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "grpcpp/support/slice.h"

#include "codecs/base/status_macros.h"
#include "server/service/base/service_error.h"

namespace quire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr size_t kOnePieceSizeBytesMax = 64 << 10;
// A nested message that is no longer is not looked into: it counts as what it
// may have at most, which for an item is what an item may have.
constexpr uint64_t kFieldSizeBytesMin = 2;
constexpr uint64_t kUncountedSizeBytesMax = kItemFieldsMax * kFieldSizeBytesMin;

absl::Status Malformed() {
  return ServiceError(absl::StatusCode::kInvalidArgument, v1::MALFORMED_REQUEST,
                      "the request is not a valid protobuf message of its "
                      "method's type");
}

struct FieldBounds {
  uint64_t fields_max = 0;
  // Elements of one field of the message itself.
  int items_field_number = 0;
  uint64_t items_max = std::numeric_limits<uint64_t>::max();
};

// Walks over a serialised message without parsing it. For one message.
class FieldCounter {
 public:
  explicit FieldCounter(const FieldBounds& bounds) : bounds_(bounds) {}

  // Errors: as ParseBatchRequest().
  absl::Status Count(CodedInputStream& in, const Descriptor& type) {
    return CountFields(in, type, bounds_.items_field_number);
  }

 private:
  absl::Status Add(uint64_t field_count) {
    field_count_ += field_count;
    if (field_count_ > bounds_.fields_max) {
      return ServiceError(
          absl::StatusCode::kInvalidArgument, v1::MALFORMED_REQUEST,
          absl::StrCat("the request has more than ", bounds_.fields_max,
                       " fields and values, more than any needs; leave out "
                       "those that the server does not know"));
    }
    return absl::OkStatus();
  }

  absl::Status AddItem() {
    if (++item_count_ > bounds_.items_max) {
      return ServiceError(
          absl::StatusCode::kInvalidArgument, v1::LIMIT_EXCEEDED,
          absl::StrCat("items: a message has more than batch_message_items_max,"
                       " ",
                       bounds_.items_max,
                       "; spread them over several messages"),
          {{"limit", "batch_message_items_max"}});
    }
    return absl::OkStatus();
  }

  // Up to the end of the stream, or of its innermost limit.
  absl::Status CountFields(CodedInputStream& in, const Descriptor& type,
                           int items_field_number) {
    while (const uint32_t tag = in.ReadTag()) {
      QUIRE_RETURN_IF_ERROR(Add(1));
      const int number = WireFormatLite::GetTagFieldNumber(tag);
      uint64_t varint = 0;
      bool is_whole = true;
      switch (WireFormatLite::GetTagWireType(tag)) {
        case WireFormatLite::WIRETYPE_VARINT:
          is_whole = in.ReadVarint64(&varint);
          break;
        case WireFormatLite::WIRETYPE_FIXED64:
          is_whole = in.Skip(sizeof(uint64_t));
          break;
        case WireFormatLite::WIRETYPE_FIXED32:
          is_whole = in.Skip(sizeof(uint32_t));
          break;
        case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
          if (number == items_field_number) {
            QUIRE_RETURN_IF_ERROR(AddItem());
          }
          QUIRE_RETURN_IF_ERROR(CountContents(in, type, number));
          break;
        default:
          // Groups, which no proto of this syntax has.
          return Malformed();
      }
      if (!is_whole) {
        return Malformed();
      }
    }
    return in.ConsumedEntireMessage() ? absl::OkStatus() : Malformed();
  }

  // Of a length-delimited field.
  absl::Status CountContents(CodedInputStream& in, const Descriptor& type,
                             int number) {
    int size_bytes = 0;
    if (!in.ReadVarintSizeAsInt(&size_bytes)) {
      return Malformed();
    }
    const FieldDescriptor* field = type.FindFieldByNumber(number);
    if (field == nullptr || (!field->is_packable() &&
                             field->type() != FieldDescriptor::TYPE_MESSAGE)) {
      return in.Skip(size_bytes) ? absl::OkStatus() : Malformed();
    }
    if (field->is_packable()) {
      // Values of one byte at least.
      QUIRE_RETURN_IF_ERROR(Add(static_cast<uint64_t>(size_bytes)));
      return in.Skip(size_bytes) ? absl::OkStatus() : Malformed();
    }
    if (static_cast<uint64_t>(size_bytes) <= kUncountedSizeBytesMax) {
      QUIRE_RETURN_IF_ERROR(
          Add(static_cast<uint64_t>(size_bytes) / kFieldSizeBytesMin));
      return in.Skip(size_bytes) ? absl::OkStatus() : Malformed();
    }
    const CodedInputStream::Limit limit = in.PushLimit(size_bytes);
    QUIRE_RETURN_IF_ERROR(CountFields(in, *field->message_type(), 0));
    // Also where the stream ended first.
    if (in.BytesUntilLimit() != 0) {
      return Malformed();
    }
    in.PopLimit(limit);
    return absl::OkStatus();
  }

  const FieldBounds bounds_;
  uint64_t field_count_ = 0;
  uint64_t item_count_ = 0;
};

absl::Status ParseFrom(google::protobuf::io::ZeroCopyInputStream& in,
                       google::protobuf::Message& message) {
  return message.ParseFromZeroCopyStream(&in) ? absl::OkStatus() : Malformed();
}

absl::Status CountFrom(google::protobuf::io::ZeroCopyInputStream& in,
                       const FieldBounds& bounds, const Descriptor& type) {
  CodedInputStream coded(&in);
  return FieldCounter(bounds).Count(coded, type);
}

absl::Status ParseWithin(const grpc::ByteBuffer& buffer,
                         const FieldBounds& bounds,
                         google::protobuf::Message& message) {
  const bool is_counted = buffer.Length() >= kCountedRequestSizeBytesMin;
  // Short requests come in one piece, which saves a copy of the buffer.
  grpc::Slice slice;
  if (buffer.Length() <= kOnePieceSizeBytesMax &&
      buffer.TrySingleSlice(&slice).ok()) {
    const auto size = static_cast<int>(slice.size());
    if (is_counted) {
      google::protobuf::io::ArrayInputStream counted(slice.begin(), size);
      QUIRE_RETURN_IF_ERROR(
          CountFrom(counted, bounds, *message.GetDescriptor()));
    }
    return message.ParseFromArray(slice.begin(), size) ? absl::OkStatus()
                                                       : Malformed();
  }
  if (is_counted) {
    grpc::ByteBuffer readable(buffer);
    grpc::ProtoBufferReader reader(&readable);
    QUIRE_RETURN_IF_ERROR(reader.status().ok() ? absl::OkStatus()
                                               : Malformed());
    QUIRE_RETURN_IF_ERROR(CountFrom(reader, bounds, *message.GetDescriptor()));
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
  // Tag and size of each item are a field of the message, too.
  return ParseWithin(
      buffer,
      {.fields_max = kRequestFieldsMax + (kItemFieldsMax + 1) * items_max,
       .items_field_number = v1::BatchReadRequest::kItemsFieldNumber,
       .items_max = items_max},
      request);
}

}  // namespace quire
