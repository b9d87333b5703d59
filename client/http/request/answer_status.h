// SPDX-License-Identifier: Apache-2.0
//
// Statuses of calls as answers of HTTP.
#ifndef QUIRE_CLIENT_HTTP_REQUEST_ANSWER_STATUS_H_
#define QUIRE_CLIENT_HTTP_REQUEST_ANSWER_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "client/http/request/http_answer.h"

namespace quire {

// Returns the answer for a failed call, before any byte was sent: 404, 400,
// 403, 401, 451 (withdrawn), 416, 410 (a list's token of other contents), 503
// and 429 with Retry-After, 504, and 502 for damaged or unexpected answers of
// the server. Errors of the connection to the server do not name its address.
// REQUIRES: !status.ok(). Thread-safe.
Answer AnswerOfStatus(const absl::Status& status);

// Returns the answer 401. Thread-safe.
Answer UnauthorizedAnswer(absl::string_view message);

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_REQUEST_ANSWER_STATUS_H_
