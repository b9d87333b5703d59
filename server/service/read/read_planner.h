// SPDX-License-Identifier: GPL-3.0-or-later
//
// Resolves the target of a request to a range of the logical space. Look-ups in
// memory only.
#ifndef QUIRE_SERVER_SERVICE_READ_READ_PLANNER_H_
#define QUIRE_SERVER_SERVICE_READ_READ_PLANNER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "proto/quire/v1/archive.pb.h"

#include "server/archive/archive.h"
#include "server/service/catalog/catalog.h"

namespace quire {

// Resolved target of a request.
struct ResolvedTarget {
  LogicalRange range;
  // Set if a document was requested.
  std::optional<DocumentOrdinal> document;
};

// Errors: OutOfRange  RANGE_PAST_END.
absl::StatusOr<ResolvedTarget> ResolveRange(const ArchiveView& view,
                                            const v1::ByteRange& range);

// `id_size_bytes_max` is the size limit of ids in requests.
// Errors: NotFound         DOCUMENT_NOT_FOUND, RECORD_TYPE_NOT_FOUND.
//         PermissionDenied DOCUMENT_WITHDRAWN.
//         OutOfRange       RANGE_PAST_END: of the document.
//         InvalidArgument  MALFORMED_REQUEST: neither id nor ordinal, or
//                          fields that exclude each other.
absl::StatusOr<ResolvedTarget> ResolveDocument(const ServedContents& contents,
                                               const v1::DocumentName& name,
                                               uint32_t id_size_bytes_max);

// For ReadRequest and BatchItem, which have the same target.
// Errors: as above; InvalidArgument if the target is not set.
template <typename Request>
absl::StatusOr<ResolvedTarget> ResolveTarget(const ServedContents& contents,
                                             const Request& request,
                                             uint32_t id_size_bytes_max);

// Returns the error for a target whose document was withdrawn after it was
// resolved by a snapshot of `generation`. Costs one load unless the rules have
// changed since.
// Errors: NotFound DOCUMENT_NOT_FOUND. PermissionDenied DOCUMENT_WITHDRAWN.
absl::Status CheckStillThere(const ServedArchive& archive,
                             const ResolvedTarget& target, uint64_t generation);

// Returns ReadResponse.zeros_hash of a state; 0 if no range of it reads as
// zeros because documents were withdrawn, or removed since.
uint64_t ZerosHash(const ServedContents& contents);

v1::ByteRange ToProto(LogicalRange range);

// Upper bound on a serialised v1::Document without its strings: tags, lengths,
// and ordinal, offset, size and time of at most 10 bytes each.
inline constexpr uint64_t kDocumentFramingSizeBytesMax = 64;

// Returns the same bytes as FillDocument(), serialised, in less time.
std::string SerialiseDocument(const Document& document);

// Writes the description of `document`, whose strings it moves, to `proto`.
void FillDocument(Document document, v1::Document& proto);

// Returns a serialised v1::Document, before its answer, so that the answer's
// memory includes it. REQUIRES: the document exists.
std::string DescribeDocument(const Archive& archive, DocumentOrdinal ordinal);
// Returns an upper bound on the size of the archive's descriptions.
uint64_t DescriptionSizeBytesMax(const Archive& archive);

// --- Implementation ---

absl::Status MissingTarget();

template <typename Request>
absl::StatusOr<ResolvedTarget> ResolveTarget(const ServedContents& contents,
                                             const Request& request,
                                             uint32_t id_size_bytes_max) {
  switch (request.target_case()) {
    case Request::kRange:
      return ResolveRange(contents.view, request.range());
    case Request::kDocument:
      return ResolveDocument(contents, request.document(), id_size_bytes_max);
    case Request::TARGET_NOT_SET:
      break;
  }
  return MissingTarget();
}

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_READ_READ_PLANNER_H_
