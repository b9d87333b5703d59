// SPDX-License-Identifier: GPL-3.0-or-later
//
// Errors that leave the server: one table from internal statuses to gRPC codes,
// reasons and google.rpc details.
#ifndef QUIRE_SERVER_SERVICE_BASE_SERVICE_ERROR_H_
#define QUIRE_SERVER_SERVICE_BASE_SERVICE_ERROR_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/support/status.h"

#include "proto/quire/v1/archive.pb.h"

namespace quire {

using ErrorMetadata = std::vector<std::pair<std::string, std::string>>;

// Returns a status with a reason and the metadata of google.rpc.ErrorInfo.
// `message` goes to clients: it must not name files or directories of the
// server. `retry_after`, if given, becomes google.rpc.RetryInfo.
absl::Status ServiceError(
    absl::StatusCode code, v1::ErrorReason reason, absl::string_view message,
    const ErrorMetadata& metadata = {},
    std::optional<absl::Duration> retry_after = std::nullopt);

// Returns the reason in `status`, or the default reason of its code for
// statuses from below the service. ERROR_REASON_UNSPECIFIED only for an OK
// status.
v1::ErrorReason ReasonOf(const absl::Status& status);

// Returns the status for the wire: the code, the message, and a
// google.rpc.Status with ErrorInfo (and RetryInfo) as details. Never UNKNOWN.
// Messages of statuses from elsewhere than ServiceError() may hold paths; they
// are replaced by a generic sentence.
grpc::Status ToGrpcStatus(const absl::Status& status);

// Returns the same for one item of a batch. REQUIRES: !status.ok().
v1::ItemStatus ToItemStatus(const absl::Status& status);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_BASE_SERVICE_ERROR_H_
