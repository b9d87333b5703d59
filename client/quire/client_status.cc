// SPDX-License-Identifier: Apache-2.0
#include "client/quire/client_status.h"

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "proto/quire/v1/error_details.pb.h"

#include "client/quire/internal/server_address.h"

namespace quire {
namespace {

absl::string_view UrlView() {
  return kErrorDetailsPayloadUrl;
}

absl::StatusCode CodeFromNumber(int code) {
  if (code < 0 || code > static_cast<int>(absl::StatusCode::kUnauthenticated)) {
    return absl::StatusCode::kUnknown;
  }
  return static_cast<absl::StatusCode>(code);
}

// True if a proxy ended the call because it has lost the server. gRPC has no
// code for that; errors of servers have details.
bool IsCutOff(const grpc::Status& status) {
  const std::string text = status.error_message();
  return (status.error_code() == grpc::INTERNAL &&
          absl::StartsWith(text, "Received RST_STREAM")) ||
         (status.error_code() == grpc::UNKNOWN && text == "Stream removed");
}

// True if gRPC itself reset the call, as data arrived that crossed a window
// which it had made smaller meanwhile. Nothing is wrong with the call.
bool IsOverflow(const grpc::Status& status) {
  return status.error_code() == grpc::INTERNAL &&
         absl::StrContains(status.error_message(), "overflows local window");
}

// Returns code and message of the server's answer to a call that a proxy reset
// after its end, such as HAProxy where a batch is refused while its client
// still sends; gRPC then reports the reset. OK if it is not such a call.
absl::Status StatusBeforeReset(const grpc::Status& status) {
  v1::RpcStatus sent;
  return absl::StartsWith(status.error_message(), "Received RST_STREAM") &&
                 sent.ParseFromString(status.error_details())
             ? absl::Status(CodeFromNumber(sent.code()), sent.message())
             : absl::OkStatus();
}

// Payload type that marks the statuses of IsCallReset().
constexpr absl::string_view kCallResetUrl = "quire/call_reset";

}  // namespace

absl::Status StatusFromGrpc(const grpc::Status& status) {
  if (status.ok()) {
    return absl::OkStatus();
  }
  const absl::StatusCode code = CodeFromNumber(status.error_code());
  if (status.error_details().empty()) {
    const std::string& text = status.error_message();
    if (IsCutOff(status)) {
      return absl::UnavailableError(
          absl::StrCat("a proxy ended the call (", text, ")"));
    }
    if (IsOverflow(status)) {
      absl::Status reset = absl::UnavailableError(
          absl::StrCat("gRPC reset the call (", text, ")"));
      reset.SetPayload(kCallResetUrl, absl::Cord());
      return reset;
    }
    return {
        IsCertificateFault(text) ? absl::StatusCode::kUnauthenticated : code,
        PlainConnectionText(text)};
  }
  absl::Status result = StatusBeforeReset(status);
  if (result.ok()) {
    result = absl::Status(code, status.error_message());
  }
  result.SetPayload(UrlView(), absl::Cord(status.error_details()));
  return result;
}

absl::Status StatusFromItem(const v1::ItemStatus& status) {
  if (status.code() == 0) {
    return absl::OkStatus();
  }
  absl::Status result(CodeFromNumber(status.code()), status.message());
  ErrorDetails details;
  // A newer server's reason has a number but no name here.
  details.reason = v1::ErrorReason_Name(status.reason());
  if (!details.reason.empty() &&
      status.reason() != v1::ERROR_REASON_UNSPECIFIED) {
    result.SetPayload(UrlView(),
                      absl::Cord(SerializeErrorDetails(
                          result.code(), status.message(), details)));
  }
  return result;
}

bool IsCallReset(const absl::Status& status) {
  return status.GetPayload(kCallResetUrl).has_value();
}

bool IsOfOtherContents(const absl::Status& status) {
  return ErrorReasonOf(status) ==
         v1::ErrorReason_Name(v1::ARCHIVE_STATE_UNKNOWN);
}

bool IsWithdrawn(const absl::Status& status) {
  return ErrorReasonOf(status) == v1::ErrorReason_Name(v1::DOCUMENT_WITHDRAWN);
}

std::optional<ErrorDetails> ErrorDetailsOf(const absl::Status& status) {
  const auto payload = status.GetPayload(UrlView());
  if (!payload.has_value()) {
    return std::nullopt;
  }
  return ParseErrorDetails(std::string(*payload));
}

std::string ErrorReasonOf(const absl::Status& status) {
  const std::optional<ErrorDetails> details = ErrorDetailsOf(status);
  return details.has_value() ? details->reason : std::string();
}

std::optional<DamagedText> DamagedTextOf(const absl::Status& status) {
  const std::optional<ErrorDetails> details = ErrorDetailsOf(status);
  if (!details.has_value() ||
      details->reason != v1::ErrorReason_Name(v1::BLOCK_DAMAGED)) {
    return std::nullopt;
  }
  // Archives have less text.
  constexpr uint64_t kSizeBytesMax = uint64_t{1} << 62;
  const auto size = [&](const char* name, uint64_t& value) {
    const auto found = details->metadata.find(name);
    return found != details->metadata.end() &&
           absl::SimpleAtoi(found->second, &value) && value < kSizeBytesMax;
  };
  DamagedText text;
  return size("before_size_bytes", text.before_size_bytes) &&
                 size("damaged_size_bytes", text.size_bytes) &&
                 text.size_bytes > 0
             ? std::optional(text)
             : std::nullopt;
}

std::optional<absl::Duration> RetryDelayOf(const absl::Status& status) {
  const std::optional<ErrorDetails> details = ErrorDetailsOf(status);
  return details.has_value() ? details->retry_delay : std::nullopt;
}

bool IsNotIndexed(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) &&
         ErrorReasonOf(status) ==
             v1::ErrorReason_Name(v1::CAPTURES_NOT_INDEXED);
}

}  // namespace quire
