// SPDX-License-Identifier: Apache-2.0
//
// How a failed call looks to the caller: an absl::Status whose code is the gRPC
// code (the two enums have the same numbers), and next to it a reason that
// programs may match. Messages are for people and may change.
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

// Under this type_url a status from the server holds its serialized
// google.rpc.Status as a payload.
inline constexpr absl::string_view kErrorDetailsPayloadUrl =
    "type.googleapis.com/google.rpc.Status";

// The same outcome as `status`, code for code. A code outside gRPC's range
// becomes Unknown. Thread-safe.
absl::Status StatusFromGrpc(const grpc::Status& status);

// The same outcome as the status of a batch's item. Thread-safe.
absl::Status StatusFromItem(const v1::ItemStatus& status);

// The name of the server's v1::ErrorReason, such as "ARCHIVE_NOT_FOUND"; empty
// if `status` is OK, was made by the client itself, or by something between it
// and the server. Thread-safe.
std::string ErrorReasonOf(const absl::Status& status);

// All that the server said besides code and message; nothing where
// ErrorReasonOf() would be empty for want of any details. Thread-safe.
std::optional<ErrorDetails> ErrorDetailsOf(const absl::Status& status);

// Text of an answer that a damaged block has.
struct DamagedText {
  // Of the answer's bytes that did not come, those before it.
  uint64_t before_size_bytes = 0;
  // At least 1.
  uint64_t size_bytes = 0;
};

// Where the damage is that a call other than a batch failed by; nothing if it
// failed by something else or the server does not say. Thread-safe.
std::optional<DamagedText> DamagedTextOf(const absl::Status& status);

// How long the server asks to wait before the same call again; nothing if it
// does not say that waiting helps. Thread-safe.
std::optional<absl::Duration> RetryDelayOf(const absl::Status& status);

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_CLIENT_STATUS_H_
