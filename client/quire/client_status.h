// SPDX-License-Identifier: Apache-2.0
//
// Errors of calls: an absl::Status with the gRPC code (the two enums have the
// same numbers) and a reason that programs may match. Messages are for humans
// and may change.
#ifndef QUIRE_CLIENT_QUIRE_CLIENT_STATUS_H_
#define QUIRE_CLIENT_QUIRE_CLIENT_STATUS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/support/status.h"

#include "proto/error_details.h"
#include "proto/quire/v1/archive.pb.h"

namespace quire {

// Type URL of the payload that holds the server's serialized google.rpc.Status.
inline constexpr absl::string_view kErrorDetailsPayloadUrl =
    "type.googleapis.com/google.rpc.Status";

// Converts `status`, code for code. A code outside gRPC's range becomes
// Unknown. Thread-safe.
absl::Status StatusFromGrpc(const grpc::Status& status);

// True if gRPC reset the call by its flow control: the same call may succeed at
// once, and waiting does not help. Thread-safe.
bool IsCallReset(const absl::Status& status);

// Converts the status of a batch item. Thread-safe.
absl::Status StatusFromItem(const v1::ItemStatus& status);

// Returns the name of the server's v1::ErrorReason, such as
// "ARCHIVE_NOT_FOUND". Empty if `status` is OK, or comes from the client itself
// or an intermediary. Thread-safe.
std::string ErrorReasonOf(const absl::Status& status);

// True if the archive does not have the contents that the call named by uuid or
// by a token (ARCHIVE_STATE_UNKNOWN): it was replaced. Thread-safe.
bool IsOfOtherContents(const absl::Status& status);

// True if the document is withdrawn, and the server says so
// (DOCUMENT_WITHDRAWN). Thread-safe.
bool IsWithdrawn(const absl::Status& status);

// Returns the server's details in addition to code and message; nothing if
// there are none. Thread-safe.
std::optional<ErrorDetails> ErrorDetailsOf(const absl::Status& status);

// Text of an answer that is in a damaged block.
struct DamagedText {
  // Bytes of the answer's missing text before it.
  uint64_t before_size_bytes = 0;
  // At least 1.
  uint64_t size_bytes = 0;
};

// Returns the damaged text of a failed call other than a batch. Nothing if the
// error is another one or the server gives no position. Thread-safe.
std::optional<DamagedText> DamagedTextOf(const absl::Status& status);

// Returns the delay that the server requests before the same call is repeated;
// nothing if waiting does not help. Thread-safe.
std::optional<absl::Duration> RetryDelayOf(const absl::Status& status);

// True if the archive has no index of captures.
bool IsNotIndexed(const absl::Status& status);

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_CLIENT_STATUS_H_
