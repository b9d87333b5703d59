// SPDX-License-Identifier: Apache-2.0
//
// The machine-readable part of a failed call, to and from the bytes that gRPC
// carries in addition to code and message (grpc::Status::error_details(), the
// trailer grpc-status-details-bin). Used by client and server;
// proto/quire/v1/error_details.proto defines the messages.
#ifndef QUIRE_PROTO_ERROR_DETAILS_H_
#define QUIRE_PROTO_ERROR_DETAILS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace quire {

// `domain` of every google.rpc.ErrorInfo of Quire.
inline constexpr absl::string_view kErrorDomain = "quire";

struct FieldViolation {
  // Path of the field in the request, such as "range.size_bytes".
  std::string field;
  std::string description;
};

struct ErrorDetails {
  // The name of a value of v1::ErrorReason, from v1::ErrorReason_Name(). A
  // string, since a newer server may send reasons that this build does not
  // know. Empty: no ErrorInfo is sent, or none of domain "quire" was received.
  std::string reason;
  // Keys as ErrorReason documents them for each reason.
  std::map<std::string, std::string> metadata;
  // Set if waiting helps: the same call may succeed after this long.
  std::optional<absl::Duration> retry_delay;
  // Malformed fields of the request.
  std::vector<FieldViolation> field_violations;
};

// Returns the third argument of grpc::Status. `code` and `message` are the
// call's own, repeated inside as google.rpc.Status requires.
// REQUIRES: details.retry_delay, if set, is finite and not negative.
// Thread-safe.
std::string SerializeErrorDetails(absl::StatusCode code,
                                  absl::string_view message,
                                  const ErrorDetails& details);

// Reads the details of any server; skips details of other types and ErrorInfos
// of other domains. Nothing unless `serialized` is a non-empty, well-formed
// google.rpc.Status.
// Thread-safe.
std::optional<ErrorDetails> ParseErrorDetails(absl::string_view serialized);

}  // namespace quire

#endif  // QUIRE_PROTO_ERROR_DETAILS_H_
