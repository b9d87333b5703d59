// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/base/service_error.h"

#include <array>
#include <string>

#include "absl/strings/cord.h"

#include "proto/error_details.h"

namespace quire {
namespace {

// URL of the payload that holds a status' serialised details, ready for the
// wire.
constexpr char kDetailsUrl[] = "quire/error-details";

// The table: each internal code, its code on the wire, its default reason, and
// the client's message unless the service wrote one.
struct Row {
  absl::StatusCode internal;
  grpc::StatusCode outgoing;
  v1::ErrorReason reason;
  const char* message;
};

constexpr char kFault[] = "internal error; the server's log says more";
constexpr std::array<Row, 17> kTable = {{
    {absl::StatusCode::kOk, grpc::StatusCode::OK, v1::ERROR_REASON_UNSPECIFIED,
     ""},
    {absl::StatusCode::kCancelled, grpc::StatusCode::CANCELLED,
     v1::CALL_CANCELLED, "the call was cancelled"},
    {absl::StatusCode::kUnknown, grpc::StatusCode::INTERNAL, v1::SERVER_FAULT,
     kFault},
    {absl::StatusCode::kInvalidArgument, grpc::StatusCode::INVALID_ARGUMENT,
     v1::MALFORMED_REQUEST, "malformed request"},
    {absl::StatusCode::kDeadlineExceeded, grpc::StatusCode::DEADLINE_EXCEEDED,
     v1::DEADLINE_PASSED, "the deadline passed"},
    {absl::StatusCode::kNotFound, grpc::StatusCode::NOT_FOUND,
     v1::DOCUMENT_NOT_FOUND, "not found"},
    {absl::StatusCode::kAlreadyExists, grpc::StatusCode::INTERNAL,
     v1::SERVER_FAULT, kFault},
    {absl::StatusCode::kPermissionDenied, grpc::StatusCode::INTERNAL,
     v1::SERVER_FAULT, kFault},
    {absl::StatusCode::kResourceExhausted, grpc::StatusCode::RESOURCE_EXHAUSTED,
     v1::SERVER_BUSY, "the server is busy; retry later"},
    {absl::StatusCode::kFailedPrecondition, grpc::StatusCode::INTERNAL,
     v1::SERVER_FAULT, kFault},
    {absl::StatusCode::kAborted, grpc::StatusCode::INTERNAL, v1::SERVER_FAULT,
     kFault},
    {absl::StatusCode::kOutOfRange, grpc::StatusCode::OUT_OF_RANGE,
     v1::RANGE_PAST_END, "the range ends past the end"},
    {absl::StatusCode::kUnimplemented, grpc::StatusCode::INTERNAL,
     v1::SERVER_FAULT, kFault},
    {absl::StatusCode::kInternal, grpc::StatusCode::INTERNAL, v1::SERVER_FAULT,
     kFault},
    {absl::StatusCode::kUnavailable, grpc::StatusCode::UNAVAILABLE,
     v1::DEVICE_FAILED, "the storage did not answer; retry"},
    {absl::StatusCode::kDataLoss, grpc::StatusCode::DATA_LOSS,
     v1::BLOCK_DAMAGED, "stored bytes are damaged"},
    {absl::StatusCode::kUnauthenticated, grpc::StatusCode::UNAUTHENTICATED,
     v1::CREDENTIALS_REJECTED, "no valid credentials"},
}};

const Row& RowOf(const absl::Status& status) {
  const auto code = static_cast<size_t>(status.raw_code());
  // kTable is in order of code; unknown future codes count as unknown.
  return kTable[code < kTable.size()
                    ? code
                    : static_cast<size_t>(absl::StatusCode::kUnknown)];
}

// Returns the details that ServiceError() attached.
std::optional<std::string> AttachedDetails(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kDetailsUrl);
  if (!payload.has_value()) {
    return std::nullopt;
  }
  return std::string(*payload);
}

}  // namespace

absl::Status ServiceError(absl::StatusCode code, v1::ErrorReason reason,
                          absl::string_view message,
                          const ErrorMetadata& metadata,
                          std::optional<absl::Duration> retry_after) {
  absl::Status status(code, message);
  ErrorDetails details;
  details.reason = v1::ErrorReason_Name(reason);
  details.metadata.insert(metadata.begin(), metadata.end());
  details.retry_delay = retry_after;
  status.SetPayload(kDetailsUrl,
                    absl::Cord(SerializeErrorDetails(code, message, details)));
  return status;
}

v1::ErrorReason ReasonOf(const absl::Status& status) {
  if (const auto attached = AttachedDetails(status); attached.has_value()) {
    const std::optional<ErrorDetails> details = ParseErrorDetails(*attached);
    v1::ErrorReason reason = v1::ERROR_REASON_UNSPECIFIED;
    if (details.has_value() &&
        v1::ErrorReason_Parse(details->reason, &reason)) {
      return reason;
    }
  }
  return RowOf(status).reason;
}

namespace {

grpc::StatusCode CodeOnWire(const absl::Status& status) {
  // Below the service these codes refer to files.
  const bool is_kept = AttachedDetails(status).has_value() &&
                       (status.code() == absl::StatusCode::kPermissionDenied ||
                        status.code() == absl::StatusCode::kFailedPrecondition);
  return is_kept ? static_cast<grpc::StatusCode>(status.code())
                 : RowOf(status).outgoing;
}

grpc::Status DescribeForWire(const absl::Status& status) {
  const Row& row = RowOf(status);
  if (const auto attached = AttachedDetails(status); attached.has_value()) {
    return {CodeOnWire(status), std::string(status.message()), *attached};
  }
  ErrorDetails details;
  details.reason = v1::ErrorReason_Name(row.reason);
  return {row.outgoing, row.message,
          SerializeErrorDetails(static_cast<absl::StatusCode>(row.outgoing),
                                row.message, details)};
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) {
    return grpc::Status::OK;
  }
  return DescribeForWire(status);
}

v1::ItemStatus ToItemStatus(const absl::Status& status) {
  const Row& row = RowOf(status);
  v1::ItemStatus item;
  item.set_code(static_cast<int32_t>(CodeOnWire(status)));
  item.set_reason(ReasonOf(status));
  item.set_message(AttachedDetails(status).has_value()
                       ? std::string(status.message())
                       : row.message);
  return item;
}

}  // namespace quire
