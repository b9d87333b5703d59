// SPDX-License-Identifier: GPL-3.0-or-later
//
// Documents of an archive that a filter selects, for those that act on all of
// them at once. Lists of a server evaluate filters page by page instead.
#ifndef QUIRE_SERVER_ARCHIVE_FILTERED_DOCUMENTS_H_
#define QUIRE_SERVER_ARCHIVE_FILTERED_DOCUMENTS_H_

#include <cstdint>
#include <functional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include "codecs/base/positions.h"
#include "codecs/filter/filter.h"
#include "server/archive/archive.h"
#include "server/archive/archive_part.h"
#include "server/archive/field_reader.h"

namespace quire {

// Checks that the filter fits the fields of the archive and, if it names
// attributes of captures, that all captures of the archive are known.
// Errors: NotFound            no such field; or the archive has no index of
//                             captures.
//         InvalidArgument     as Filter::Check().
//         FailedPrecondition  some segments have captures and no index of them.
absl::Status CheckFilter(const Archive& archive, const Filter& filter);

// Calls `visit` with each document that matches the filter, in the order of the
// archive. Documents that were removed for good match no filter. A media type
// or record type that is not plain text is null, as in lists of a server.
//
// `load` must return each part, and may block
// (BlockingPartLoader()). Parts are read in the order of the
// archive; none of a group of documents whose bounds exclude a match. `check`,
// which may be empty, is called for each group, of at most 4096 documents,
// before its parts are read, and while an index of captures is read; an error
// ends the walk. The filter may name the attributes of captures (filter.h),
// which are null for other documents. Memory: that of DocumentFieldReader, and
// CaptureValues. Thread-safe if `load` is.
// Errors: DataLoss  fields or an index of captures are damaged; names the
//                   document and the part.
//         Those of CheckFilter(), `load` and `check`.
absl::Status VisitMatches(const Archive& archive, const Filter& filter,
                          const ArchivePartLoader& load,
                          const std::function<absl::Status()>& check,
                          absl::FunctionRef<void(DocumentOrdinal)> visit);

// Returns about the memory of VisitMatches() with this archive and filter, in
// bytes: that of the fields, up to the limits of DocumentFieldReader, and of
// the captures if the filter names their attributes.
uint64_t EstimateVisitMatchesBytes(const Archive& archive,
                                   const Filter& filter);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FILTERED_DOCUMENTS_H_
