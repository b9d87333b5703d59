// SPDX-License-Identifier: Apache-2.0
//
// Exports selected documents, or payloads, by one batch of reads; and what this
// has in common with exports of all documents.
#ifndef QUIRE_CLIENT_CLI_EXPORT_SELECTION_H_
#define QUIRE_CLIENT_CLI_EXPORT_SELECTION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/cli/cli_run.h"
#include "client/cli/document_filter.h"
#include "client/cli/formats/export_format.h"

namespace quire {

// Documents of an export: those of one state of an archive, after an earlier
// state.
struct ExportScope {
  // Uuid, size and number of documents are those of the state.
  v1::ArchiveDescription archive;
  // Zero, except for the uuid, if the export has all documents.
  v1::EarlierState since;
};

// Messages about the documents of an export. Thread-compatible.
class ExportReport {
 public:
  // `run` must outlive it.
  explicit ExportReport(CliRun& run) : run_(run) {}

  // Reports a document that cannot be read in full; `effect`, such as "is left
  // out", is its form in the export. Only counts those after the first few,
  // unless --verbose is set.
  void Complain(const v1::Document& document, absl::string_view effect,
                const absl::Status& status);

  // Number of documents passed to Complain().
  uint64_t damaged_count() const { return damaged_count_; }

  // Ends a complete export, whose output is valid in spite of complaints.
  // `damaged` names the documents that were only counted, `exported` those that
  // were written; `note` follows.
  void Finish(absl::string_view damaged, absl::string_view exported,
              uint64_t left_out_count, uint64_t withdrawn_count,
              absl::string_view note);

 private:
  CliRun& run_;
  uint64_t damaged_count_ = 0;
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
