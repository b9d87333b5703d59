// SPDX-License-Identifier: Apache-2.0
//
// Lists of archives and documents: JSON, JSON Lines and pages for people. All
// functions block and are thread-safe. Errors: as the calls of Client.
#ifndef QUIRE_CLIENT_HTTP_LISTING_ANSWER_H_
#define QUIRE_CLIENT_HTTP_LISTING_ANSWER_H_

#include "absl/status/statusor.h"

#include "client/http/archive_reads.h"
#include "client/http/archive_states.h"
#include "client/http/request/http_answer.h"
#include "client/quire/client.h"

namespace quire {

absl::StatusOr<Answer> AnswerArchives(const HttpRequest& request,
                                      Client& client);
absl::StatusOr<Answer> AnswerBrowseArchives(const HttpRequest& request,
                                            Client& client);

// Errors: also NotFound  the archive does not have the named state.
absl::StatusOr<Answer> AnswerArchive(const HttpRequest& request,
                                     Client& client);

// Answer with the documents of `state`.
absl::StatusOr<Answer> AnswerList(const HttpRequest& request,
                                  const KnownState& state, Client& client);
absl::StatusOr<Answer> AnswerBrowse(const HttpRequest& request,
                                    const KnownState& state,
                                    ArchiveReads& reads);

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_LISTING_ANSWER_H_
