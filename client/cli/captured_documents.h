// SPDX-License-Identifier: Apache-2.0
//
// Documents of captures, for lists that the index of captures answers.
#ifndef QUIRE_CLIENT_CLI_CAPTURED_DOCUMENTS_H_
#define QUIRE_CLIENT_CLI_CAPTURED_DOCUMENTS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/cli/cli_run.h"
#include "client/cli/document_filter.h"
#include "client/cli/document_listing.h"
#include "client/quire/capture_index_lister.h"

namespace quire {

// True if the list of `settings` comes from the index of captures: --key is
// set, or --where names digest or status, which the archive has no field of,
// but captures. REQUIRES: `filter` is that of `settings`.
bool NeedsCaptureIndex(const CliSettings& settings,
                       const DocumentFilter& filter,
                       const v1::ArchiveDescription& archive);

// Lists the documents of captures in the order of the index, those below the
// key settings.prefix if --key is set. The server evaluates --where; other
// filters are those of DocumentListing, with the statuses of the index.
// Thread-compatible.
class CapturedDocuments {
 public:
  // Pins the contents of the archive. `run` must outlive the list.
  // Errors: InvalidArgument  a filter that also documents match that are no
  //                          captures, or that names fields of the archive;
  //                          --fields or PREFIX; as DocumentFilter::Make().
  static absl::StatusOr<CapturedDocuments> List(
      CliRun& run, const DocumentFilter& filter,
      const v1::ArchiveDescription& archive);

  // Returns the next document that passes; nothing at the end. The HTTP status
  // is set if `with_status` or the filter needs it.
  // Errors: as CaptureIndexLister::Next() and PassesFilter().
  absl::StatusOr<std::optional<ListedDocument>> Next(bool with_status);

  // Complains of captures that the index lacks, after the end of a list of
  // `count` documents. Errors: NotFound  nothing was listed.
  absl::Status End(uint64_t count);

 private:
  CapturedDocuments(CliRun& run, CaptureIndexLister lister,
                    DocumentFilter filter);

  CliRun* run_;
  CaptureIndexLister lister_;
  // Without --where.
  DocumentFilter filter_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_CAPTURED_DOCUMENTS_H_
