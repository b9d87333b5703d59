// SPDX-License-Identifier: Apache-2.0
//
// Counts the fields of messages before they are parsed. A field of two bytes on
// the wire, such as an empty item or one with an unknown number, takes up to 64
// bytes once parsed. A bound on the size of a message is therefore no bound on
// its memory.
#ifndef QUIRE_PROTO_MESSAGE_BOUNDS_H_
#define QUIRE_PROTO_MESSAGE_BOUNDS_H_

#include <cstdint>
#include <limits>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/zero_copy_stream.h"

namespace quire {

struct MessageBounds {
  // Fields and values of repeated fields, including nested messages.
  uint64_t fields_max = 0;
  // Number of the field whose elements are counted; 0: none.
  int items_field_number = 0;
  uint64_t items_max = std::numeric_limits<uint64_t>::max();
};

enum class BoundsCheck {
  kWithin,
  // The bytes are not a message; some errors show only in parsing.
  kMalformed,
  kTooManyFields,
  kTooManyItems,
};

// Nested messages of at most twice this size are not walked: they count as the
// most fields that they can have.
inline constexpr uint64_t kUncountedFieldsMax = 32;

// Walks over a serialised message of `type`, up to the end of `in` or the first
// error. Memory use does not depend on the message. Thread-safe.
BoundsCheck CheckBounds(google::protobuf::io::ZeroCopyInputStream& in,
                        const MessageBounds& bounds,
                        const google::protobuf::Descriptor& type);

}  // namespace quire

#endif  // QUIRE_PROTO_MESSAGE_BOUNDS_H_
