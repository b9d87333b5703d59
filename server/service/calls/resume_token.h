// SPDX-License-Identifier: GPL-3.0-or-later
//
// The opaque tokens by which clients go on where they stood.
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

// Where a Scan stands; bytes of the logical space.
struct ScanPosition {
  uint64_t next_offset = 0;
  uint64_t end_offset = 0;
};

// Good for this archive as it is now: bound to its uuid.
std::string MakeResumeToken(const Archive& archive, ScanPosition position);

// The same for one in stored order.
std::string MakeResumeToken(const Archive& archive,
                            StoredOrder::Position position);

// Where a Scan request in stored order begins.
// Errors: InvalidArgument  MALFORMED_REQUEST: a token that is none, or of
//                          other contents or another order; an offset or a
//                          size besides stored_order.
absl::StatusOr<StoredOrder::Position> ResolveStoredScan(
    const Archive& archive, const v1::ScanRequest& request);

// The range that a Scan request asks for.
// Errors: OutOfRange       RANGE_PAST_END.
//         InvalidArgument  MALFORMED_REQUEST: a token that is none, or of
//                          other contents; size_bytes besides a token.
absl::StatusOr<LogicalRange> ResolveScan(const Archive& archive,
                                         const v1::ScanRequest& request);

// Where a ListArchives stands: after the archive of that name.
std::string MakeArchivesPageToken(absl::string_view last_name);
// Errors: InvalidArgument  MALFORMED_REQUEST.
absl::StatusOr<std::string> ParseArchivesPageToken(absl::string_view token);

// Where a ListDocuments stands. Bound to the archive's uuid and to the prefix.
std::string MakePageToken(const Archive& archive, absl::string_view prefix,
                          const Archive::IdCursor& last);
// Errors: InvalidArgument  MALFORMED_REQUEST.
absl::StatusOr<Archive::IdCursor> ParsePageToken(const Archive& archive,
                                                 absl::string_view prefix,
                                                 absl::string_view token);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_RESUME_TOKEN_H_
