// SPDX-License-Identifier: GPL-3.0-or-later
//
// Checks of what the container of a segment has about its documents.
#ifndef QUIRE_SERVER_ARCHIVE_CONTAINER_CHECK_H_
#define QUIRE_SERVER_ARCHIVE_CONTAINER_CHECK_H_

#include "absl/status/status.h"

#include "server/archive/segment_reader.h"

namespace quire {

// Reads the whole container of a segment, with blocking preads, and compares
// the fields and the index of captures with the documents. Deposited files,
// which may lie in several segments, are only read. Thread-safe.
// Errors: DataLoss, which names the file; as SegmentReader::Open().
absl::Status CheckContainerOf(const SegmentReader& segment);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_CONTAINER_CHECK_H_
