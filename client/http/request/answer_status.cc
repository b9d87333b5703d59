// SPDX-License-Identifier: Apache-2.0
#include "client/http/request/answer_status.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "client/quire/client_status.h"
#include "client/quire/payload_search.h"
#include "codecs/base/printable_text.h"

namespace quire {
namespace {

// Longer delays of a server are not passed on.
constexpr absl::Duration kRetryAfterMax = absl::Hours(1);

int HttpStatusOf(const absl::Status& status) {
  // The record is damaged, or decodes to too much: not a matter of time.
  if (IsPayloadFault(status)) {
    return 502;
  }
  if (IsWithdrawn(status)) {
    return 451;
  }
  if (IsNotIndexed(status)) {
    return 404;
  }
  const std::string reason = ErrorReasonOf(status);
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kUnauthenticated:
      // Without a reason the client refuses the server.
      return reason.empty() ? 502 : 401;
    case absl::StatusCode::kOutOfRange:
      return 416;
    case absl::StatusCode::kFailedPrecondition:
      return IsOfOtherContents(status) ? 410 : 502;
    case absl::StatusCode::kResourceExhausted:
      if (reason == v1::ErrorReason_Name(v1::LIMIT_EXCEEDED)) {
        return 400;
      }
      return reason == v1::ErrorReason_Name(v1::QUOTA_EXCEEDED) ? 429 : 503;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    case absl::StatusCode::kOk:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kDataLoss:
    default:
      return 502;
  }
}

// Messages of the client itself name the server.
std::string MessageOf(const absl::Status& status) {
  const bool is_of_client = ErrorReasonOf(status).empty();
  if (is_of_client &&
      (absl::IsUnavailable(status) || absl::IsUnauthenticated(status))) {
    return "the server of the archives cannot be reached";
  }
  if (is_of_client && absl::IsDeadlineExceeded(status)) {
    return "the server of the archives did not answer in time";
  }
  return PrintableMessage(status.message());
}

}  // namespace

Answer UnauthorizedAnswer(absl::string_view message) {
  Answer answer = TextAnswer(401, message);
  answer.headers.emplace_back("WWW-Authenticate", "Bearer");
  return answer;
}

Answer AnswerOfStatus(const absl::Status& status) {
  const int code = HttpStatusOf(status);
  const std::string message = MessageOf(status);
  if (code == 401) {
    return UnauthorizedAnswer({message.data(), message.size()});
  }
  Answer answer = TextAnswer(code, {message.data(), message.size()});
  if (code == 429 || code == 503) {
    const absl::Duration delay = std::min(
        RetryDelayOf(status).value_or(absl::Seconds(1)), kRetryAfterMax);
    answer.headers.emplace_back(
        "Retry-After",
        absl::StrCat(std::max<int64_t>(
            1, absl::ToInt64Seconds(absl::Ceil(delay, absl::Seconds(1))))));
  }
  return answer;
}

}  // namespace quire
