// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/base/service_error.h"

#include <string>

#include "proto/error_details.h"

#include "testing/base/status_matchers.h"

namespace quire {
namespace {

TEST(ServiceErrorTest, EveryCodeLeavesWithAReasonAndNeverAsUnknown) {
  for (int code = 1; code <= 20; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code),
                              "/srv/secret/path is broken");
    const grpc::Status outgoing = ToGrpcStatus(status);
    EXPECT_NE(outgoing.error_code(), grpc::StatusCode::OK) << code;
    EXPECT_NE(outgoing.error_code(), grpc::StatusCode::UNKNOWN) << code;
    EXPECT_EQ(outgoing.error_message().find("secret"), std::string::npos);
    const auto details = ParseErrorDetails(outgoing.error_details());
    ASSERT_TRUE(details.has_value()) << code;
    EXPECT_EQ(details->reason, v1::ErrorReason_Name(ReasonOf(status)));
    EXPECT_NE(ReasonOf(status), v1::ERROR_REASON_UNSPECIFIED);
    const v1::ItemStatus item = ToItemStatus(status);
    EXPECT_EQ(item.code(), static_cast<int>(outgoing.error_code()));
    EXPECT_EQ(item.reason(), ReasonOf(status));
    EXPECT_EQ(item.message(), outgoing.error_message());
  }
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
}

TEST(ServiceErrorTest, DocumentedCodesKeepTheirNumber) {
  const std::pair<absl::StatusCode, grpc::StatusCode> pairs[] = {
      {absl::StatusCode::kNotFound, grpc::StatusCode::NOT_FOUND},
      {absl::StatusCode::kOutOfRange, grpc::StatusCode::OUT_OF_RANGE},
      {absl::StatusCode::kInvalidArgument, grpc::StatusCode::INVALID_ARGUMENT},
      {absl::StatusCode::kDataLoss, grpc::StatusCode::DATA_LOSS},
      {absl::StatusCode::kResourceExhausted,
       grpc::StatusCode::RESOURCE_EXHAUSTED},
      {absl::StatusCode::kUnavailable, grpc::StatusCode::UNAVAILABLE},
      {absl::StatusCode::kDeadlineExceeded,
       grpc::StatusCode::DEADLINE_EXCEEDED},
      {absl::StatusCode::kUnauthenticated, grpc::StatusCode::UNAUTHENTICATED},
      {absl::StatusCode::kCancelled, grpc::StatusCode::CANCELLED}};
  for (const auto& [internal, outgoing] : pairs) {
    EXPECT_EQ(ToGrpcStatus(absl::Status(internal, "x")).error_code(), outgoing);
  }
}

TEST(ServiceErrorTest, OnlyTheServiceSendsSomeCodes) {
  const std::pair<absl::StatusCode, v1::ErrorReason> pairs[] = {
      {absl::StatusCode::kPermissionDenied, v1::READ_NOT_PERMITTED},
      {absl::StatusCode::kPermissionDenied, v1::DOCUMENT_WITHDRAWN},
      {absl::StatusCode::kFailedPrecondition, v1::ARCHIVE_STATE_UNKNOWN}};
  for (const auto& [code, reason] : pairs) {
    EXPECT_EQ(ToGrpcStatus(absl::Status(code, "a file")).error_code(),
              grpc::StatusCode::INTERNAL);
    const absl::Status own = ServiceError(code, reason, "no");
    EXPECT_EQ(ToGrpcStatus(own).error_code(),
              static_cast<grpc::StatusCode>(code));
    EXPECT_EQ(ToItemStatus(own).code(), static_cast<int>(code));
    EXPECT_EQ(ReasonOf(own), reason);
  }
}

TEST(ServiceErrorTest, CarriesReasonMetadataAndRetry) {
  const absl::Status status =
      ServiceError(absl::StatusCode::kResourceExhausted, v1::SERVER_BUSY,
                   "too much", {{"limit", "x"}}, absl::Milliseconds(1250));
  EXPECT_EQ(ReasonOf(status), v1::SERVER_BUSY);
  const grpc::Status outgoing = ToGrpcStatus(status);
  EXPECT_EQ(outgoing.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(outgoing.error_message(), "too much");
  const auto details = ParseErrorDetails(outgoing.error_details());
  ASSERT_TRUE(details.has_value());
  EXPECT_EQ(details->reason, "SERVER_BUSY");
  EXPECT_EQ(details->metadata.at("limit"), "x");
  EXPECT_EQ(details->retry_delay, absl::Milliseconds(1250));
}

}  // namespace
}  // namespace quire
