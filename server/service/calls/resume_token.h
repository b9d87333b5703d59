// SPDX-License-Identifier: GPL-3.0-or-later
//
// Opaque tokens by which clients resume scans and lists. A token names the
// contents that it was made for, and is valid while Archive::HasContents().
#ifndef QUIRE_SERVER_SERVICE_CALLS_RESUME_TOKEN_H_
#define QUIRE_SERVER_SERVICE_CALLS_RESUME_TOKEN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

#include "server/archive/archive.h"
#include "server/archive/stored_order.h"

namespace quire {

// Position of a Scan, in bytes of the logical space.
struct ScanPosition {
  uint64_t next_offset = 0;
  uint64_t end_offset = 0;
};

std::string MakeResumeToken(const Archive& archive, ScanPosition position);

// Returns a token for a scan in stored order.
std::string MakeResumeToken(const Archive& archive,
                            StoredOrder::Position position);

// Where a Scan request in stored order begins.
// Errors: InvalidArgument  MALFORMED_REQUEST: a token that is none, or of
//                          another order; an offset or a size together with
//                          stored_order.
//         FailedPrecondition  ARCHIVE_STATE_UNKNOWN: a token of other contents.
absl::StatusOr<StoredOrder::Position> ResolveStoredScan(
    const Archive& archive, const v1::ScanRequest& request);

// Returns the range that a Scan request asks for.
// Errors: OutOfRange       RANGE_PAST_END.
//         InvalidArgument  MALFORMED_REQUEST: a token that is none, or of
//                          another order; size_bytes together with a token.
//         FailedPrecondition  ARCHIVE_STATE_UNKNOWN: a token of other contents.
absl::StatusOr<LogicalRange> ResolveScan(const Archive& archive,
                                         const v1::ScanRequest& request);

// Returns a token for ListArchives to continue after `last_name`.
std::string MakeArchivesPageToken(absl::string_view last_name);
// Errors: InvalidArgument  MALFORMED_REQUEST.
absl::StatusOr<std::string> ParseArchivesPageToken(absl::string_view token);

// Position of a ListDocuments: after the entry `last`. Bound to the request,
// except for its page_size and archive_uuid.
std::string MakePageToken(const Archive& archive,
                          const v1::ListDocumentsRequest& request,
                          const Archive::IdCursor& last);
// Parses request.page_token().
// Errors: InvalidArgument     MALFORMED_REQUEST.
//         FailedPrecondition  ARCHIVE_STATE_UNKNOWN: of other contents.
absl::StatusOr<Archive::IdCursor> ParsePageToken(
    const Archive& archive, const v1::ListDocumentsRequest& request);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_RESUME_TOKEN_H_
