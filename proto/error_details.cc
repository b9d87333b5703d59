// SPDX-License-Identifier: Apache-2.0
#include "proto/error_details.h"

#include <cstdint>
#include <limits>

#include "google/protobuf/any.pb.h"
#include "google/protobuf/message_lite.h"

#include "proto/quire/v1/error_details.pb.h"

namespace quire {
namespace {

constexpr char kErrorInfoUrl[] = "type.googleapis.com/google.rpc.ErrorInfo";
constexpr char kRetryInfoUrl[] = "type.googleapis.com/google.rpc.RetryInfo";
constexpr char kBadRequestUrl[] = "type.googleapis.com/google.rpc.BadRequest";

// Any::PackFrom() would write the names of our own package.
void Pack(const char* type_url, const google::protobuf::MessageLite& detail,
          v1::RpcStatus& status) {
  google::protobuf::Any* any = status.add_details();
  any->set_type_url(type_url);
  detail.SerializeToString(any->mutable_value());
}

// The text before the last slash is a host without meaning.
bool HasType(const google::protobuf::Any& any, absl::string_view type_url) {
  const absl::string_view sent(any.type_url().data(), any.type_url().size());
  const absl::string_view name = type_url.substr(type_url.rfind('/'));
  return sent.size() >= name.size() &&
         sent.substr(sent.size() - name.size()) == name;
}

}  // namespace

std::string SerializeErrorDetails(absl::StatusCode code,
                                  absl::string_view message,
                                  const ErrorDetails& details) {
  v1::RpcStatus status;
  status.set_code(static_cast<int32_t>(code));
  status.set_message(message.data(), message.size());
  if (!details.reason.empty()) {
    v1::RpcErrorInfo info;
    info.set_reason(details.reason);
    info.set_domain(kErrorDomain.data(), kErrorDomain.size());
    info.mutable_metadata()->insert(details.metadata.begin(),
                                    details.metadata.end());
    Pack(kErrorInfoUrl, info, status);
  }
  if (details.retry_delay.has_value()) {
    v1::RpcRetryInfo retry;
    const int64_t nanos = absl::ToInt64Nanoseconds(*details.retry_delay);
    retry.mutable_retry_delay()->set_seconds(nanos / 1'000'000'000);
    retry.mutable_retry_delay()->set_nanos(
        static_cast<int32_t>(nanos % 1'000'000'000));
    Pack(kRetryInfoUrl, retry, status);
  }
  if (!details.field_violations.empty()) {
    v1::RpcBadRequest bad_request;
    for (const FieldViolation& violation : details.field_violations) {
      auto* added = bad_request.add_field_violations();
      added->set_field(violation.field);
      added->set_description(violation.description);
    }
    Pack(kBadRequestUrl, bad_request, status);
  }
  return status.SerializeAsString();
}

std::optional<ErrorDetails> ParseErrorDetails(absl::string_view serialized) {
  v1::RpcStatus status;
  if (serialized.empty() ||
      serialized.size() > std::numeric_limits<int>::max() ||
      !status.ParseFromArray(serialized.data(),
                             static_cast<int>(serialized.size()))) {
    return std::nullopt;
  }
  ErrorDetails details;
  for (const google::protobuf::Any& any : status.details()) {
    if (HasType(any, kErrorInfoUrl)) {
      v1::RpcErrorInfo info;
      if (info.ParseFromString(any.value()) &&
          info.domain() == std::string(kErrorDomain)) {
        details.reason = info.reason();
        details.metadata = {info.metadata().begin(), info.metadata().end()};
      }
    } else if (HasType(any, kRetryInfoUrl)) {
      v1::RpcRetryInfo retry;
      if (retry.ParseFromString(any.value()) && retry.has_retry_delay()) {
        details.retry_delay = absl::Seconds(retry.retry_delay().seconds()) +
                              absl::Nanoseconds(retry.retry_delay().nanos());
      }
    } else if (HasType(any, kBadRequestUrl)) {
      v1::RpcBadRequest bad_request;
      if (bad_request.ParseFromString(any.value())) {
        for (const auto& violation : bad_request.field_violations()) {
          details.field_violations.push_back(
              {violation.field(), violation.description()});
        }
      }
    }
  }
  return details;
}

}  // namespace quire
