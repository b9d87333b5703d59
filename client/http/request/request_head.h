// SPDX-License-Identifier: Apache-2.0
//
// Checks of a request's line and headers before any work.
#ifndef QUIRE_CLIENT_HTTP_REQUEST_REQUEST_HEAD_H_
#define QUIRE_CLIENT_HTTP_REQUEST_REQUEST_HEAD_H_

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"

#include "client/http/request/http_answer.h"

namespace quire {

// A request as received. The views are borrowed.
struct RequestHead {
  absl::string_view method;
  absl::string_view target;
  absl::string_view version;
  // Names and values, in order.
  std::vector<std::pair<absl::string_view, absl::string_view>> headers = {};
};

struct RequestRules {
  // Names of this host in lower case, without ports; others get 421.
  std::vector<std::string> hosts = {};
  // Origins that may read answers; "*" stands for all. Empty: none.
  std::vector<std::string> allowed_origins = {};
  // Tokens may be sent to the server.
  bool forwards_tokens = true;
  // As of ParseBasePath(). Targets may begin with it or not. The header
  // X-Forwarded-Prefix replaces it in links.
  std::string base_path = {};
};

// True if `parts`, views into `block`, are all of it except for NUL, white
// space and colons. The HTTP library overwrites separators with NUL, and its
// strings end at a NUL that the client sent: this finds what follows such a
// NUL, and continued header lines. Thread-safe.
bool CoversHead(absl::string_view block, std::vector<absl::string_view> parts);

// Returns the request, or the answer that needs none: to OPTIONS, and errors.
// Thread-safe.
std::variant<HttpRequest, Answer> ParseRequest(const RequestHead& head,
                                               const RequestRules& rules);

// Adds the headers that let pages of allowed origins read the answer to a
// request of `origin`; empty: none was named. Thread-safe.
void AddOriginHeaders(absl::string_view origin, const RequestRules& rules,
                      Answer& answer);

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_REQUEST_REQUEST_HEAD_H_
