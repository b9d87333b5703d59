// SPDX-License-Identifier: Apache-2.0
//
// The dictionary of a .warc.zst, made from a sample of the documents that an
// export has.
#ifndef QUIRE_CLIENT_CLI_EXPORT_SAMPLE_H_
#define QUIRE_CLIENT_CLI_EXPORT_SAMPLE_H_

#include <string>

#include "absl/status/statusor.h"

#include "client/cli/cli_run.h"
#include "client/cli/document_filter.h"
#include "client/cli/export_selection.h"

namespace quire {

// Reads documents that pass `filter`, spread evenly over the export, as records
// of a WARC, and returns a dictionary for such records
// (MakeRecordDictionary()). With --revisit-duplicates payloads that repeat in
// the sample are revisits there, too: else they would fill the dictionary,
// which no record of the export then needs. Lists all documents first. Holds up
// to 192 MiB, and up to 256 MiB for the targets of revisits.
// Documents over 1 MiB, and those that cannot be read, which the export
// reports, are not in the sample. Blocks. Errors: as ExportSelection().
absl::StatusOr<std::string> MakeExportDictionary(CliRun& run,
                                                 const ExportScope& scope,
                                                 const DocumentFilter& filter);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_EXPORT_SAMPLE_H_
