// SPDX-License-Identifier: GPL-3.0-or-later
//
// One page of a ListDocuments, from the indexes in memory.
#ifndef QUIRE_SERVER_SERVICE_CALLS_DOCUMENT_PAGE_H_
#define QUIRE_SERVER_SERVICE_CALLS_DOCUMENT_PAGE_H_

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

#include "server/service/catalog/catalog.h"

namespace quire {

// A page ends before the entry that would exceed this size, in bytes, since ids
// and media types may be long. The token adds to it.
inline constexpr uint64_t kPageSizeBytesMax = uint64_t{1} << 20;

// Upper bound on the memory of a listed document or prefix without its texts.
inline constexpr uint64_t kListedEntryBytes = 512;

// A page that grows is admitted in steps of this size: each takes a lock.
inline constexpr uint64_t kPageStepBytes = uint64_t{64} << 10;

// Returns the memory, in bytes, of a request of `size_bytes` to a List call: as
// gRPC holds it, parsed, and its `filter` parsed.
uint64_t ListRequestBytes(uint64_t size_bytes, absl::string_view filter);

// Documents, or groups of them, that one page passes over at most. Some ten
// milliseconds.
inline constexpr uint64_t kPassedMax = 20'000;

// Returns the page size of a request to a List call, unset or at least 1.
// Errors: InvalidArgument  MALFORMED_REQUEST: it is 0.
absl::StatusOr<uint32_t> PageSizeOf(std::optional<uint32_t> requested,
                                    uint32_t page_size_max);

// Errors: InvalidArgument  MALFORMED_REQUEST: prefix, delimiter and
//                          first_ordinal exclude each other, columns need
//                          first_ordinal, or the delimiter has a wrong size.
absl::Status CheckListedSelection(const v1::ListDocumentsRequest& request);

// Returns the end of a group of documents from `ordinal` on that need not be
// listed, or `ordinal` if the document must be.
using ExcludedUntil = absl::FunctionRef<uint64_t(uint64_t ordinal)>;

// Fills an empty response with the entries after the request's page token, in
// the time of one page of results. A page ends early, and may be empty, after
// kPassedMax excluded documents in order of id, or groups of them in order of
// the archive. REQUIRES: contents.view is StateOfList() of the request. Errors:
// InvalidArgument  MALFORMED_REQUEST: of the page token.
absl::Status FillDocumentPage(const ServedContents& contents,
                              const v1::ListDocumentsRequest& request,
                              uint32_t page_size, ExcludedUntil excluded_until,
                              v1::ListDocumentsResponse& response);

// Calls `add` with the documents of a list in the order of the archive, after
// the request's page token, until it returns false. Sets `last_ordinal` if the
// page must end early, as above: the list continues after it.
// Errors: InvalidArgument  MALFORMED_REQUEST: of the page token.
absl::Status SelectByOrdinal(
    const ServedContents& contents, const v1::ListDocumentsRequest& request,
    ExcludedUntil excluded_until,
    absl::FunctionRef<bool(DocumentOrdinal ordinal)> add,
    std::optional<uint64_t>& last_ordinal);

// Ends a page after its first `document_count` documents and the common
// prefixes between them.
// REQUIRES: 1 <= document_count < response.documents_size().
void TruncateDocumentPage(const ServedContents& contents,
                          const v1::ListDocumentsRequest& request,
                          int document_count,
                          v1::ListDocumentsResponse& response);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_DOCUMENT_PAGE_H_
