// SPDX-License-Identifier: Apache-2.0
#include "proto/message_bounds.h"

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"

namespace quire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr uint64_t kFieldSizeBytesMin = 2;
constexpr uint64_t kUncountedSizeBytesMax =
    kUncountedFieldsMax * kFieldSizeBytesMin;

// For one message.
class FieldCounter {
 public:
  explicit FieldCounter(const MessageBounds& bounds) : bounds_(bounds) {}

  BoundsCheck Count(CodedInputStream& in, const Descriptor& type) {
    return CountFields(in, type, bounds_.items_field_number);
  }

 private:
  BoundsCheck Add(uint64_t field_count) {
    field_count_ += field_count;
    return field_count_ > bounds_.fields_max ? BoundsCheck::kTooManyFields
                                             : BoundsCheck::kWithin;
  }

  static BoundsCheck WholeIf(bool is_whole) {
    return is_whole ? BoundsCheck::kWithin : BoundsCheck::kMalformed;
  }

  // Counts up to the end of the stream, or of its innermost limit.
  BoundsCheck CountFields(CodedInputStream& in, const Descriptor& type,
                          int items_field_number) {
    while (const uint32_t tag = in.ReadTag()) {
      if (const BoundsCheck check = Add(1); check != BoundsCheck::kWithin) {
        return check;
      }
      const int number = WireFormatLite::GetTagFieldNumber(tag);
      const bool is_item = number == items_field_number;
      const BoundsCheck check = CountField(
          in, WireFormatLite::GetTagWireType(tag), type, number, is_item);
      if (check != BoundsCheck::kWithin) {
        return check;
      }
    }
    return WholeIf(in.ConsumedEntireMessage());
  }

  // Counts the value after the field's tag.
  BoundsCheck CountField(CodedInputStream& in, WireFormatLite::WireType wire,
                         const Descriptor& type, int number, bool is_item) {
    uint64_t varint = 0;
    switch (wire) {
      case WireFormatLite::WIRETYPE_VARINT:
        return WholeIf(in.ReadVarint64(&varint));
      case WireFormatLite::WIRETYPE_FIXED64:
        return WholeIf(in.Skip(sizeof(uint64_t)));
      case WireFormatLite::WIRETYPE_FIXED32:
        return WholeIf(in.Skip(sizeof(uint32_t)));
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
        if (is_item && ++item_count_ > bounds_.items_max) {
          return BoundsCheck::kTooManyItems;
        }
        return CountContents(in, type, number);
      default:
        // Groups: no proto of this syntax has them.
        return BoundsCheck::kMalformed;
    }
  }

  // Contents of a length-delimited field.
  BoundsCheck CountContents(CodedInputStream& in, const Descriptor& type,
                            int number) {
    int size = 0;
    if (!in.ReadVarintSizeAsInt(&size)) {
      return BoundsCheck::kMalformed;
    }
    const auto size_bytes = static_cast<uint64_t>(size);
    const FieldDescriptor* field = type.FindFieldByNumber(number);
    const bool is_message =
        field != nullptr && field->type() == FieldDescriptor::TYPE_MESSAGE;
    if (is_message && size_bytes > kUncountedSizeBytesMax) {
      return CountNested(in, *field->message_type(), size);
    }
    uint64_t field_count = 0;
    if (is_message) {
      field_count = size_bytes / kFieldSizeBytesMin;
    } else if (field != nullptr && field->is_packable()) {
      // Values have one byte or more.
      field_count = size_bytes;
    }
    const BoundsCheck check = Add(field_count);
    return check == BoundsCheck::kWithin ? WholeIf(in.Skip(size)) : check;
  }

  BoundsCheck CountNested(CodedInputStream& in, const Descriptor& type,
                          int size) {
    const CodedInputStream::Limit limit = in.PushLimit(size);
    const BoundsCheck check = CountFields(in, type, 0);
    if (check != BoundsCheck::kWithin) {
      return check;
    }
    // Also if the stream ended early.
    if (in.BytesUntilLimit() != 0) {
      return BoundsCheck::kMalformed;
    }
    in.PopLimit(limit);
    return BoundsCheck::kWithin;
  }

  const MessageBounds bounds_;
  uint64_t field_count_ = 0;
  uint64_t item_count_ = 0;
};

}  // namespace

BoundsCheck CheckBounds(google::protobuf::io::ZeroCopyInputStream& in,
                        const MessageBounds& bounds, const Descriptor& type) {
  CodedInputStream coded(&in);
  return FieldCounter(bounds).Count(coded, type);
}

}  // namespace quire
