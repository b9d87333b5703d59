// SPDX-License-Identifier: GPL-3.0-or-later
//
// From what a request asks for to a range of the logical space. Pure look-ups
// in RAM.
#ifndef QUIRE_SERVER_SERVICE_READ_READ_PLANNER_H_
#define QUIRE_SERVER_SERVICE_READ_READ_PLANNER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "proto/quire/v1/archive.pb.h"

#include "server/archive/archive.h"

namespace quire {

// What a request comes down to.
struct ResolvedTarget {
  LogicalRange range;
  // Set if a document was asked for.
  std::optional<DocumentOrdinal> document;
};

// Errors: OutOfRange  RANGE_PAST_END.
absl::StatusOr<ResolvedTarget> ResolveRange(const Archive& archive,
                                            const v1::ByteRange& range);

// `id_size_bytes_max` bounds the ids that requests may name.
// Errors: NotFound         DOCUMENT_NOT_FOUND, RECORD_TYPE_NOT_FOUND.
//         OutOfRange       RANGE_PAST_END: of the document.
//         InvalidArgument  MALFORMED_REQUEST: neither id nor ordinal, or
//                          fields that do not go together.
absl::StatusOr<ResolvedTarget> ResolveDocument(const Archive& archive,
                                               const v1::DocumentName& name,
                                               uint32_t id_size_bytes_max);

// For ReadRequest and BatchItem, which share the shape of their target.
// Errors: as above; InvalidArgument if the target is not set.
template <typename Request>
absl::StatusOr<ResolvedTarget> ResolveTarget(const Archive& archive,
                                             const Request& request,
                                             uint32_t id_size_bytes_max);

v1::ByteRange ToProto(LogicalRange range);
// What a v1::Document takes at most besides its strings, serialised: ordinal,
// offset, size and time of at most 10 bytes each, tags and lengths.
inline constexpr uint64_t kDocumentFramingSizeBytesMax = 64;

// What FillDocument() makes of `document`, serialised: the same bytes in less
// time.
std::string SerialiseDocument(const Document& document);

// Makes `proto` the description of `document`, whose strings it takes.
void FillDocument(Document document, v1::Document& proto);

// A v1::Document, serialised: made before the answer that it is a part of, so
// that it is counted in what the answer takes. REQUIRES: the document exists.
std::string DescribeDocument(const Archive& archive, DocumentOrdinal ordinal);
// At least the size of every description of the archive's documents.
uint64_t DescriptionSizeBytesMax(const Archive& archive);

// --- Implementation ---

absl::Status MissingTarget();

template <typename Request>
absl::StatusOr<ResolvedTarget> ResolveTarget(const Archive& archive,
                                             const Request& request,
                                             uint32_t id_size_bytes_max) {
  switch (request.target_case()) {
    case Request::kRange:
      return ResolveRange(archive, request.range());
    case Request::kDocument:
      return ResolveDocument(archive, request.document(), id_size_bytes_max);
    case Request::TARGET_NOT_SET:
      break;
  }
  return MissingTarget();
}

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_READ_READ_PLANNER_H_
