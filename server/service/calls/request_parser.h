// SPDX-License-Identifier: GPL-3.0-or-later
//
// From the bytes of a request to its message, within a bound on memory.
#ifndef QUIRE_SERVER_SERVICE_CALLS_REQUEST_PARSER_H_
#define QUIRE_SERVER_SERVICE_CALLS_REQUEST_PARSER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "grpcpp/support/byte_buffer.h"

#include "proto/quire/v1/archive.pb.h"

namespace quire {

// Fields are counted before they are parsed (message_bounds.h), and what is not
// parsed is bounded by its size. These are far above what any honest request
// has.

// Of a request with one target, in bytes: an id, a prefix or a page token is
// the longest part of it.
inline constexpr uint64_t kSingleRequestSizeBytesMax = 256 << 10;
// Fields and values of repeated ones, those of nested messages included.
inline constexpr uint64_t kRequestFieldsMax = 128;
// The same for each item that a message of a batch may have.
inline constexpr uint64_t kItemFieldsMax = 32;
// Shorter requests are not counted, as their fields take no memory to speak of.
inline constexpr uint64_t kCountedRequestSizeBytesMin = 1 << 10;

// Parses the request of any method but BatchRead. Thread-safe.
// Errors: InvalidArgument  MALFORMED_REQUEST: the bytes are not such a message,
//                          or it is over a bound above.
absl::Status ParseRequest(const grpc::ByteBuffer& buffer,
                          google::protobuf::Message& message);

// Parses a message of a batch. Thread-safe.
// Errors: InvalidArgument  MALFORMED_REQUEST: as above
//                          LIMIT_EXCEEDED: more than `items_max` items.
absl::Status ParseBatchRequest(const grpc::ByteBuffer& buffer,
                               uint64_t items_max,
                               v1::BatchReadRequest& request);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_REQUEST_PARSER_H_
