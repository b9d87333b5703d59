// SPDX-License-Identifier: Apache-2.0
//
// Exports selected documents, or payloads, by one batch of reads.
#ifndef QUIRE_CLIENT_CLI_EXPORT_SELECTION_H_
#define QUIRE_CLIENT_CLI_EXPORT_SELECTION_H_

#include "absl/status/status.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/cli/cli_run.h"
#include "client/cli/document_filter.h"
#include "client/cli/export_format.h"

namespace quire {

// Documents of an export: those of one state of an archive, after an earlier
// state.
struct ExportScope {
  // Uuid, size and number of documents are those of the state.
  v1::ArchiveDescription archive;
  // Zero, except for the uuid, if the export has all documents.
  v1::EarlierState since;
};

// Writes the documents that pass `filter`, or with CliSettings::payload their
// payloads, to `writer`, in the order of the archive.
// A document that cannot be read ends the export, unless only its payload is at
// fault (IsPayloadFault(), or a revisit whose target is not in the archive) or
// CliSettings::keep_going is set. Then it is named and left out.
// Errors: NotFound  no document passes.
//         Aborted   the archive was replaced by other contents.
//         Others as a batch and as OutputFile.
absl::Status ExportSelection(CliRun& run, const ExportScope& scope,
                             const DocumentFilter& filter,
                             DocumentWriter& writer);

// Writes the same to a file for each document in CliSettings::output_dir.
absl::Status ExportToDirectory(CliRun& run, const ExportScope& scope,
                               const DocumentFilter& filter);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_EXPORT_SELECTION_H_
