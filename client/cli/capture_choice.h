// SPDX-License-Identifier: Apache-2.0
//
// Chooses a capture of an id by its HTTP status, or of a URL by the index of
// captures; and the media types of revisits.
#ifndef QUIRE_CLIENT_CLI_CAPTURE_CHOICE_H_
#define QUIRE_CLIENT_CLI_CAPTURE_CHOICE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/cli/cli_run.h"
#include "client/cli/document_filter.h"
#include "client/quire/capture_index_lister.h"
#include "client/quire/capture_time.h"
#include "client/quire/read_target.h"

namespace quire {

// Returns the document that `key` would select if all of its captures passed
// `filter`, by its ordinal: one with a body if any has it. Pins the contents of
// the archive. Blocks. REQUIRES: `key` has an id and no occurrence.
// Errors: NotFound  no capture of the id passes; the message names statuses.
//         Others as reads.
absl::StatusOr<DocumentKey> ChooseCapture(CliRun& run, const DocumentKey& key,
                                          const DocumentFilter& filter);

// Captures of a URL, by the index of captures.
struct CaptureSelection {
  // In any spelling; with `is_key` its key.
  std::string url;
  bool is_key = false;
  // Unset: the newest is preferred.
  std::optional<CapturePeriod> closest = {};
  // A redirect or an answer to HEAD is chosen only if there is no other.
  bool prefers_pages = true;
};

// Returns the capture that passes `filter` and is closest to the start of the
// period, by its ordinal; without record types in `filter` a response, revisit
// or resource. Pins the contents of the archive; notes a capture outside the
// period. Blocks.
// Errors: NotFound  the index has none that passes. Others as
//         CaptureIndexLister::Next() and as reads.
absl::StatusOr<DocumentKey> FindIndexedCapture(
    CliRun& run, const CaptureSelection& selection, DocumentFilter filter);

// Returns a note on the captures that the index lacks; empty if it has all.
// REQUIRES: a call of the lister succeeded.
std::string DescribeUnindexed(const CaptureIndexLister& lister);

// Returns the record that a revisit refers to; nothing if the archive does not
// hold it. Blocks.
// Errors: Aborted  the archive was replaced. Others as reads.
absl::StatusOr<std::optional<v1::Document>> FindRevisited(
    CliRun& run, const v1::Document& revisit);

// As filter.Passes(). A revisit that has no media type of its own gets that of
// what it revisits first, if the filter depends on it. Blocks then.
// Errors: as FindRevisited().
absl::StatusOr<bool> PassesFilter(CliRun& run, const DocumentFilter& filter,
                                  v1::Document& document);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_CAPTURE_CHOICE_H_
