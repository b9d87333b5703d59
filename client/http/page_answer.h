// SPDX-License-Identifier: Apache-2.0
//
// Pages of a crawl. A payload that is not coded is a range of the archive;
// others are decoded into memory or, above one piece, into the spool.
#ifndef QUIRE_CLIENT_HTTP_PAGE_ANSWER_H_
#define QUIRE_CLIENT_HTTP_PAGE_ANSWER_H_

#include "absl/status/statusor.h"

#include "client/http/archive_reads.h"
#include "client/http/archive_states.h"
#include "client/http/bodies/memory_budget.h"
#include "client/http/bodies/page_spool.h"
#include "client/http/request/http_answer.h"

namespace quire {

// Answers a request for a page of `state`. Blocks. Thread-safe. `reads` and
// `spool` must outlive the answer.
// Errors: as ArchiveReads::Read(), ReadPayload(), PageSpool and AnswerPart().
absl::StatusOr<Answer> AnswerPage(const HttpRequest& request,
                                  const KnownState& state, ArchiveReads& reads,
                                  PageSpool& spool, MemoryBudget& budget,
                                  MemoryCharge& charge);

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_PAGE_ANSWER_H_
