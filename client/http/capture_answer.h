// SPDX-License-Identifier: Apache-2.0
//
// Answers with captures of crawls, for replay tools that ask a CDX server.
#ifndef QUIRE_CLIENT_HTTP_CAPTURE_ANSWER_H_
#define QUIRE_CLIENT_HTTP_CAPTURE_ANSWER_H_

#include "absl/status/statusor.h"

#include "client/http/request/http_answer.h"
#include "client/quire/client.h"

namespace quire {

// Answers a request for Resource::kCaptures with the captures of all its
// archives, merged. A capture is named by a file "ARCHIVE@UUID/space", below
// "/v1/", and its position there. The body is charged as it grows.
// Errors: InvalidArgument     the lines take more than 16 MiB: nothing is cut.
//         ResourceExhausted   no memory for them.
//         FailedPrecondition  IsNotIndexed(). As CaptureIndexLister::Next().
absl::StatusOr<Answer> AnswerCaptures(const HttpRequest& request,
                                      Client& client, MemoryCharge& charge);

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_CAPTURE_ANSWER_H_
