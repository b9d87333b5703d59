// SPDX-License-Identifier: GPL-3.0-or-later
//
// Opaque tokens by which clients resume scans and lists. A token names the
// state of the archive that it was made for, and is valid while
// Archive::FindState() has it.
#ifndef QUIRE_SERVER_SERVICE_CALLS_RESUME_TOKEN_H_
#define QUIRE_SERVER_SERVICE_CALLS_RESUME_TOKEN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

#include "server/archive/archive.h"
#include "server/archive/capture_scan.h"
#include "server/archive/stored_order.h"

namespace quire {

// Position of a Scan, in bytes of the logical space.
struct ScanPosition {
  uint64_t next_offset = 0;
  uint64_t end_offset = 0;
};

std::string MakeResumeToken(const ArchiveView& view, ScanPosition position);

// Returns a token for a scan in stored order; `segments_id` is
// StoredOrder::SegmentsId().
std::string MakeResumeToken(const ArchiveView& view,
                            StoredOrder::Position position,
                            uint64_t segments_id);

// True if the request has a token of a scan in stored order. REQUIRES:
// StateOfScan() returned OK.
bool HasStoredToken(const v1::ScanRequest& request);

// True if the request has a token of a scan in logical order, which the server
// chooses also for requests of stored order. REQUIRES: as above.
bool HasLogicalToken(const v1::ScanRequest& request);

// Returns the state of the archive that a request reads: that of its token, or
// else `asked`, that of its archive_uuid.
// Errors: InvalidArgument  MALFORMED_REQUEST: a token that is none; or of
//                          another state than the request's archive_uuid.
//         FailedPrecondition  ARCHIVE_STATE_UNKNOWN: a token of other contents.
absl::StatusOr<ArchiveView> StateOfScan(const ArchiveView& asked,
                                        const v1::ScanRequest& request);
absl::StatusOr<ArchiveView> StateOfList(
    const ArchiveView& asked, const v1::ListDocumentsRequest& request);

// Where a Scan request in stored order begins. REQUIRES: `view` is
// StateOfScan().
// Errors: InvalidArgument     MALFORMED_REQUEST: a token that is none, or of
//                             another order; an offset or a size together with
//                             stored_order.
//         FailedPrecondition  ARCHIVE_STATE_UNKNOWN: the token is of an order
//                             that the archive no longer has.
absl::StatusOr<StoredOrder::Position> ResolveStoredScan(
    const ArchiveView& view, const v1::ScanRequest& request);

// Returns the range that a Scan request asks for. REQUIRES: `view` is
// StateOfScan().
// Errors: OutOfRange       RANGE_PAST_END.
//         InvalidArgument  MALFORMED_REQUEST: a token that is none, or of
//                          another order; size_bytes together with a token.
absl::StatusOr<LogicalRange> ResolveScan(const ArchiveView& view,
                                         const v1::ScanRequest& request);

// Returns a token for ListArchives to continue after `last_name`.
std::string MakeArchivesPageToken(absl::string_view last_name);
// Errors: InvalidArgument  MALFORMED_REQUEST.
absl::StatusOr<std::string> ParseArchivesPageToken(absl::string_view token);

// Position of a ListFiles: after the files of `path` whose text ends at or
// before `text_end` of the logical space.
struct FilePosition {
  std::string path;
  uint64_t text_end = 0;
};

// Bound to the prefix of the request.
std::string MakeFilesPageToken(const v1::ListFilesRequest& request,
                               const FilePosition& last);
// Parses request.page_token(). Errors: InvalidArgument  MALFORMED_REQUEST.
absl::StatusOr<FilePosition> ParseFilesPageToken(
    const v1::ListFilesRequest& request);

// Position of a ListDocuments: after the entry `last`. Bound to the request,
// except for its page_size and archive_uuid.
std::string MakePageToken(const ArchiveView& view,
                          const v1::ListDocumentsRequest& request,
                          const Archive::IdCursor& last);
// Parses request.page_token().
// Errors: InvalidArgument  MALFORMED_REQUEST.
absl::StatusOr<Archive::IdCursor> ParsePageToken(
    const v1::ListDocumentsRequest& request);

// The same for a ListCaptures: after the capture at `last`. Bound to the
// request likewise.
absl::StatusOr<ArchiveView> StateOfCaptures(
    const ArchiveView& asked, const v1::ListCapturesRequest& request);
std::string MakeCapturesPageToken(const ArchiveView& view,
                                  const v1::ListCapturesRequest& request,
                                  const CapturePlace& last);
absl::StatusOr<CapturePlace> ParseCapturesPageToken(
    const v1::ListCapturesRequest& request);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_RESUME_TOKEN_H_
