// SPDX-License-Identifier: GPL-3.0-or-later
//
// Parses the bytes of a request within a bound on memory.
#ifndef QUIRE_SERVER_SERVICE_CALLS_REQUEST_PARSER_H_
#define QUIRE_SERVER_SERVICE_CALLS_REQUEST_PARSER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "grpcpp/support/byte_buffer.h"

#include "proto/quire/v1/archive.pb.h"

namespace quire {

// Fields are counted before they are parsed (message_bounds.h); the size bounds
// the rest. The limits are far above any legitimate request.

// Size limit of a request with one target, in bytes. Its longest part is an id,
// a prefix or a page token.
inline constexpr uint64_t kSingleRequestSizeBytesMax = 256 << 10;
// Limit on fields, including values of repeated and nested ones.
inline constexpr uint64_t kRequestFieldsMax = 128;
// Limit on fields of each item in a message of a batch.
inline constexpr uint64_t kItemFieldsMax = 32;
// Shorter requests are not counted: their fields take little memory.
inline constexpr uint64_t kCountedRequestSizeBytesMin = 1 << 10;

// Parses the request of any method except BatchRead. Thread-safe.
// Errors: InvalidArgument  MALFORMED_REQUEST: not such a message, or over a
//                          bound above.
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
