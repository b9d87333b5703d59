// SPDX-License-Identifier: Apache-2.0
#include "proto/error_details.h"

#include "gtest/gtest.h"

#include "proto/quire/v1/error_details.pb.h"

namespace quire {
namespace {

TEST(ErrorDetailsTest, ComesBackWhole) {
  ErrorDetails sent;
  sent.reason = "SERVER_BUSY";
  sent.metadata = {{"archive", "web"}, {"limit", "in_flight"}};
  sent.retry_delay = absl::Milliseconds(1500);
  sent.field_violations = {{"range.size_bytes", "must not be zero"}};
  const std::string bytes =
      SerializeErrorDetails(absl::StatusCode::kResourceExhausted, "busy", sent);
  const std::optional<ErrorDetails> received = ParseErrorDetails(bytes);
  ASSERT_TRUE(received.has_value());
  EXPECT_EQ(received->reason, sent.reason);
  EXPECT_EQ(received->metadata, sent.metadata);
  EXPECT_EQ(received->retry_delay, sent.retry_delay);
  ASSERT_EQ(received->field_violations.size(), 1u);
  EXPECT_EQ(received->field_violations[0].field, "range.size_bytes");
  EXPECT_EQ(received->field_violations[0].description, "must not be zero");
}

TEST(ErrorDetailsTest, TravelsUnderTheStandardNames) {
  ErrorDetails sent;
  sent.reason = "DRAINING";
  sent.retry_delay = absl::Seconds(2);
  v1::RpcStatus status;
  ASSERT_TRUE(status.ParseFromString(
      SerializeErrorDetails(absl::StatusCode::kUnavailable, "bye", sent)));
  EXPECT_EQ(status.code(), 14);
  EXPECT_EQ(status.message(), "bye");
  ASSERT_EQ(status.details_size(), 2);
  EXPECT_EQ(status.details(0).type_url(),
            "type.googleapis.com/google.rpc.ErrorInfo");
  EXPECT_EQ(status.details(1).type_url(),
            "type.googleapis.com/google.rpc.RetryInfo");
}

// The bytes of a google.rpc.Status from another implementation.
TEST(ErrorDetailsTest, ReadsTheStandardEncoding) {
  const char bytes[] =
      "\x08\x05\x12\x02no"
      "\x1A\x3D\x0A\x28type.googleapis.com/google.rpc.ErrorInfo"
      "\x12\x11\x0A\x08"
      "BAD_LUCK\x12\x05quire";
  const std::optional<ErrorDetails> received =
      ParseErrorDetails(absl::string_view(bytes, sizeof(bytes) - 1));
  ASSERT_TRUE(received.has_value());
  EXPECT_EQ(received->reason, "BAD_LUCK");
  EXPECT_FALSE(received->retry_delay.has_value());
}

TEST(ErrorDetailsTest, PassesOverWhatIsNotOurs) {
  v1::RpcErrorInfo info;
  info.set_reason("QUOTA");
  info.set_domain("example.com");
  v1::RpcStatus status;
  auto* any = status.add_details();
  any->set_type_url("type.googleapis.com/google.rpc.ErrorInfo");
  info.SerializeToString(any->mutable_value());
  status.add_details()->set_type_url("type.googleapis.com/google.rpc.Help");
  const std::optional<ErrorDetails> received =
      ParseErrorDetails(status.SerializeAsString());
  ASSERT_TRUE(received.has_value());
  EXPECT_EQ(received->reason, "");
}

TEST(ErrorDetailsTest, RefusesWhatIsNoStatus) {
  EXPECT_FALSE(ParseErrorDetails("").has_value());
  EXPECT_FALSE(ParseErrorDetails("\xFF\xFF\xFF").has_value());
}

}  // namespace
}  // namespace quire
