// SPDX-License-Identifier: Apache-2.0
//
// Messages that are counted before they are parsed. A field of two bytes on the
// wire, such as an empty item or one of a number that is not known, takes up to
// 64 bytes once it is parsed, so that a bound on the size of a message is none
// on the memory that it takes.
#ifndef QUIRE_PROTO_MESSAGE_BOUNDS_H_
#define QUIRE_PROTO_MESSAGE_BOUNDS_H_

#include <cstdint>
#include <limits>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/zero_copy_stream.h"

namespace quire {

struct MessageBounds {
  // Fields and values of repeated ones, those of nested messages included.
  uint64_t fields_max = 0;
  // Elements of one field of the message itself; 0: of none.
  int items_field_number = 0;
  uint64_t items_max = std::numeric_limits<uint64_t>::max();
};

enum class BoundsCheck {
  kWithin,
  // The bytes are no message; not all faults are seen without parsing.
  kMalformed,
  kTooManyFields,
  kTooManyItems,
};

// A nested message of at most twice so many bytes is not looked into: it counts
// as what it may have at most.
inline constexpr uint64_t kUncountedFieldsMax = 32;

// Walks over a serialised message of `type`, up to the end of `in` or the first
// fault. Takes no memory that grows with the message. Thread-safe.
BoundsCheck CheckBounds(google::protobuf::io::ZeroCopyInputStream& in,
                        const MessageBounds& bounds,
                        const google::protobuf::Descriptor& type);

}  // namespace quire

#endif  // QUIRE_PROTO_MESSAGE_BOUNDS_H_
