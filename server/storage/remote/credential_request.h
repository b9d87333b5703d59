// SPDX-License-Identifier: GPL-3.0-or-later
//
// Requests to the services that give credentials out.
#ifndef QUIRE_SERVER_STORAGE_REMOTE_CREDENTIAL_REQUEST_H_
#define QUIRE_SERVER_STORAGE_REMOTE_CREDENTIAL_REQUEST_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/storage/remote/request_signature.h"

namespace quire {

struct CredentialRequest {
  enum class Method : uint8_t { kGet, kPut, kPost };

  Method method = Method::kGet;
  std::string url;
  HttpHeaders headers = {};
  // Of a POST.
  std::string body = {};
  // Metadata is never asked for by a proxy: it would be that of another
  // machine.
  bool may_use_proxy = false;
  std::chrono::milliseconds time_max{1'000};
  // Requests in all, with a pause of a second between them, until one is
  // answered with a status below 500 other than 429.
  int tries_max = 1;
};

struct CredentialAnswer {
  int status = 0;
  std::string body = {};
};

// Limit on the body of an answer.
inline constexpr size_t kCredentialAnswerSizeBytesMax = size_t{64} << 10;

// "http://HOST[:PORT]" of a URL, for messages: a path can be a secret. Empty if
// it is malformed.
std::string OriginOf(absl::string_view url);

// True if the URL of a container's credentials may be asked: https://, or
// http:// with an address of the loopback, "localhost" or one of the three
// addresses that ECS and EKS use, and no user name. This is the rule of
// botocore.
bool IsContainerUrl(absl::string_view url);

// Blocks until the answer, whatever its status; follows no redirects.
// Thread-safe. Errors: Unavailable       no connection, or it broke.
//         DeadlineExceeded  a connection, but no answer within time_max.
//         ResourceExhausted the answer is too large.
//         Cancelled         `cancel` is true; noticed within a second.
// Messages have the origin only.
absl::StatusOr<CredentialAnswer> SendCredentialRequest(
    const CredentialRequest& request, const std::atomic<bool>& cancel);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_REMOTE_CREDENTIAL_REQUEST_H_
