// SPDX-License-Identifier: GPL-3.0-or-later
//
// Copies the documents of a segment, without their text, to a new one.
#ifndef QUIRE_SERVER_ARCHIVE_CARRIED_DOCUMENTS_H_
#define QUIRE_SERVER_ARCHIVE_CARRIED_DOCUMENTS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"

#include "server/archive/index/document_index_builder.h"
#include "server/archive/segment_reader.h"

namespace quire {

// What is left out of a segment that is written again.
struct LeftOut {
  // Documents by their ordinals in the segment, ascending: only their size
  // stays, and kWithdrawnRecordType.
  std::span<const uint64_t> documents = {};
  // Deposited files by their index in SegmentReader::deposits(), ascending:
  // only their paths stay. Those with text of left out documents need not be
  // named.
  std::span<const size_t> deposits = {};
};

// Adds all documents of `segment` to `to`, in order, with all that its
// container has about them. The one place that carries sub-sections of
// containers where segments are joined or written again. Errors:
// FailedPrecondition  the container has parts that this program does
//                             not know, or a field has another type in `to`.
//         DataLoss            the container is damaged.
//         InvalidArgument     over a limit of the format.
absl::Status CarryDocuments(const SegmentReader& segment,
                            const LeftOut& left_out, DocumentIndexBuilder& to);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_CARRIED_DOCUMENTS_H_
