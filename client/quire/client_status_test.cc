// SPDX-License-Identifier: Apache-2.0
#include "client/quire/client_status.h"

#include <optional>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"

namespace quire {
namespace {

TEST(ClientStatusTest, KeepsEveryCode) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status =
        StatusFromGrpc({static_cast<grpc::StatusCode>(code), "why"});
    EXPECT_EQ(static_cast<int>(status.code()), code);
    EXPECT_EQ(status.message(), "why");
    v1::ItemStatus item;
    item.set_code(code);
    EXPECT_EQ(StatusFromItem(item).code(), status.code());
  }
  QUIRE_EXPECT_OK(StatusFromGrpc(grpc::Status::OK));
  QUIRE_EXPECT_OK(StatusFromItem({}));
}

TEST(ClientStatusTest, TakesStrangeCodesForUnknown) {
  for (int code : {-1, 17}) {
    EXPECT_THAT(StatusFromGrpc({static_cast<grpc::StatusCode>(code), ""}),
                HasCode(absl::StatusCode::kUnknown));
  }
  for (int code : {-1, 17, 1 << 30}) {
    v1::ItemStatus item;
    item.set_code(code);
    EXPECT_THAT(StatusFromItem(item), HasCode(absl::StatusCode::kUnknown));
  }
}

TEST(ClientStatusTest, TakesACallThatAProxyCutForUnavailable) {
  const grpc::Status reset = {grpc::INTERNAL,
                              "Received RST_STREAM with error code 2"};
  EXPECT_THAT(StatusFromGrpc(reset),
              FailsWith(absl::StatusCode::kUnavailable,
                        ::testing::HasSubstr("(Received RST_STREAM")));
  EXPECT_FALSE(IsCallReset(StatusFromGrpc(reset)));
  const grpc::Status overflow = {
      grpc::INTERNAL, "frame of size 16384 overflows local window of 5"};
  EXPECT_THAT(StatusFromGrpc(overflow),
              HasCode(absl::StatusCode::kUnavailable));
  EXPECT_TRUE(IsCallReset(StatusFromGrpc(overflow)));
  EXPECT_THAT(
      StatusFromGrpc({grpc::INTERNAL, overflow.error_message(), "\x08"}),
      HasCode(absl::StatusCode::kInternal));
  EXPECT_THAT(StatusFromGrpc({grpc::UNKNOWN, "Stream removed"}),
              HasCode(absl::StatusCode::kUnavailable));
  // Errors of a server, and others.
  EXPECT_THAT(StatusFromGrpc({grpc::INTERNAL, reset.error_message(), "\x08"}),
              HasCode(absl::StatusCode::kInternal));
  EXPECT_THAT(StatusFromGrpc({grpc::INTERNAL, "a bug"}),
              HasCode(absl::StatusCode::kInternal));
  EXPECT_THAT(StatusFromGrpc({grpc::UNKNOWN, reset.error_message()}),
              HasCode(absl::StatusCode::kUnknown));
}

TEST(ClientStatusTest, TakesTheServersCodeOfACallThatAProxyReset) {
  ErrorDetails details;
  details.reason = "ARCHIVE_OPENING";
  details.retry_delay = absl::Seconds(1);
  const std::string sent = SerializeErrorDetails(absl::StatusCode::kUnavailable,
                                                 "it opens", details);
  const absl::Status status = StatusFromGrpc(
      {grpc::CANCELLED, "Received RST_STREAM with error code 8", sent});
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kUnavailable, "it opens"));
  EXPECT_EQ(RetryDelayOf(status), absl::Seconds(1));
  EXPECT_EQ(ErrorReasonOf(status), details.reason);
  EXPECT_THAT(StatusFromGrpc({grpc::CANCELLED, "Cancelled", sent}),
              HasCode(absl::StatusCode::kCancelled));
}

TEST(ClientStatusTest, NamesTheReasonOfAnItem) {
  v1::ItemStatus item;
  item.set_code(15);
  item.set_reason(v1::BLOCK_DAMAGED);
  item.set_message("block 7");
  EXPECT_EQ(ErrorReasonOf(StatusFromItem(item)), "BLOCK_DAMAGED");
  item.set_reason(static_cast<v1::ErrorReason>(1000));
  EXPECT_EQ(ErrorReasonOf(StatusFromItem(item)), "");
}

TEST(ClientStatusTest, HasNoReasonForWhatIsNotTheServers) {
  EXPECT_EQ(ErrorReasonOf(absl::OkStatus()), "");
  EXPECT_EQ(ErrorReasonOf(absl::DataLossError("")), "");
  EXPECT_FALSE(RetryDelayOf(absl::UnavailableError("")).has_value());
  EXPECT_EQ(
      ErrorReasonOf(StatusFromGrpc({grpc::INTERNAL, "", "\xFF no status"})),
      "");
}

TEST(ClientStatusTest, SaysWhereTheDamageIs) {
  const auto status = [](const std::string& before, const std::string& size,
                         v1::ErrorReason reason = v1::BLOCK_DAMAGED) {
    ErrorDetails details;
    details.reason = v1::ErrorReason_Name(reason);
    details.metadata = {{"before_size_bytes", before},
                        {"damaged_size_bytes", size}};
    return StatusFromGrpc({grpc::StatusCode::DATA_LOSS, "damaged",
                           SerializeErrorDetails(absl::StatusCode::kDataLoss,
                                                 "damaged", details)});
  };
  const std::optional<DamagedText> text = DamagedTextOf(status("7", "4096"));
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(text->before_size_bytes, 7u);
  EXPECT_EQ(text->size_bytes, 4096u);
  // Impossible sizes, which would make a scan loop.
  for (const auto& [before, size] : {std::pair("0", "0"),
                                     {"", "1"},
                                     {"1", ""},
                                     {"-1", "1"},
                                     {"1", "18446744073709551615"},
                                     {"18446744073709551615", "1"}}) {
    EXPECT_FALSE(DamagedTextOf(status(before, size)).has_value()) << before;
  }
  EXPECT_FALSE(
      DamagedTextOf(status("7", "4096", v1::DEVICE_FAILED)).has_value());
  EXPECT_FALSE(DamagedTextOf(absl::OkStatus()).has_value());
}

}  // namespace
}  // namespace quire
