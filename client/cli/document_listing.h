// SPDX-License-Identifier: Apache-2.0
//
// Lists the documents that pass a filter, with their HTTP statuses, and common
// prefixes.
#ifndef QUIRE_CLIENT_CLI_DOCUMENT_LISTING_H_
#define QUIRE_CLIENT_CLI_DOCUMENT_LISTING_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/cli/cli_run.h"
#include "client/cli/document_filter.h"
#include "client/quire/batch_reader.h"
#include "client/quire/client.h"

namespace quire {

struct ListedDocument {
  v1::Document document;
  // Stands for all documents whose id starts with `document`'s, which has no
  // other field.
  bool is_common_prefix = false;
  // In listings by id: number among the documents of the id, from 0.
  uint64_t occurrence = 0;
  // In listings by id: true if the id alone does not name this document.
  bool needs_occurrence = false;
  // Unset: the document has no HTTP status, or it was not requested.
  std::optional<int> http_status = {};
  // True if the status could not be read.
  bool is_status_unknown = false;
};

struct DocumentListingOptions {
  // Reads the HTTP status of each response and revisit, even if the filter does
  // not need it.
  bool with_status = false;
  // Reports documents whose status cannot be read, instead of failing.
  bool keep_going = true;
  // Leaves out documents with lower ordinals.
  uint64_t first_ordinal = 0;
  // Documents of the archive, if those that are not listed are of interest: a
  // bit is held for each.
  uint64_t document_count = 0;
};

// Documents that a listing left out.
struct UnlistedDocuments {
  uint64_t count = 0;
  // The first of the last ones that are neighbours.
  uint64_t ordinal = 0;
};

// Reads statuses from the first KiB of each record, in batches: at most 1,024
// documents and 16 MiB of descriptions are held, and 4 MiB of records.
// Thread-compatible.
class DocumentListing {
 public:
  // `run` and `filter` must outlive the listing. `lister` is to list withdrawn
  // documents, too (ListOptions::with_withdrawn), which are counted.
  DocumentListing(CliRun& run, DocumentLister lister,
                  const DocumentFilter& filter,
                  const DocumentListingOptions& options);

  // Returns the next document that passes, in the order of the lister; nothing
  // at the end. With `keep_going`, documents whose status cannot be read are
  // reported with CliRun::ComplainOfItem(); a filter on statuses leaves them
  // out.
  // Errors: Aborted, or FailedPrecondition (IsOfOtherContents())  the archive
  //         was replaced by other contents, or has others than --uuid.
  //         Others as DocumentLister::Next() and of reads.
  absl::StatusOr<std::optional<ListedDocument>> Next();

  // Documents listed so far, whether they pass or not.
  uint64_t listed_count() const { return listed_count_; }

  // Withdrawn documents among them that were left out.
  uint64_t withdrawn_count() const { return withdrawn_count_; }

  // After the end: which of the documents from DocumentListingOptions::
  // first_ordinal to `document_count` were not listed.
  UnlistedDocuments FindUnlisted() const;

  // Responses and revisits among them.
  uint64_t capture_count() const { return capture_count_; }

 private:
  struct Entry {
    ListedDocument listed;
    bool is_decided = true;
    uint64_t size_bytes = 0;
    // Size of the part that was requested last.
    uint64_t part_size_bytes = 0;
  };

  // Fetches descriptions while fewer than half of the maximum are held.
  absl::Status Fill();
  // Returns the next document of the lister.
  absl::StatusOr<std::optional<ListedDocument>> Advance();
  BatchReader::Item RequestPart(uint64_t tag, Entry& entry,
                                uint64_t part_size_bytes) const;
  absl::Status TakeAnswer();
  absl::Status TakePart(BatchAnswer answer);

  CliRun& run_;
  DocumentLister lister_;
  const DocumentFilter& filter_;
  const bool with_status_;
  const bool keep_going_;
  const uint64_t first_ordinal_;
  // Null until the first status is needed.
  std::unique_ptr<BatchReader> batch_;
  // Look-ahead of the lister.
  bool has_begun_ = false;
  std::optional<ListEntry> next_;
  uint64_t occurrence_ = 0;
  bool at_end_ = false;
  std::deque<Entry> entries_;
  // Tag of the first of them.
  uint64_t first_tag_ = 0;
  uint64_t entries_size_bytes_ = 0;
  uint64_t listed_count_ = 0;
  uint64_t withdrawn_count_ = 0;
  // By ordinal.
  std::vector<bool> is_listed_;
  uint64_t capture_count_ = 0;
};

// True if the id alone may read a document of this record type.
bool IsReadById(const v1::Document& document);

// NotFound: no document passed the filter of `listing`, with a hint why.
absl::Status NothingPassed(const CliRun& run, const DocumentFilter& filter,
                           const DocumentListing& listing);

// Aborted: the archive of `run` was replaced.
absl::Status ArchiveReplaced(const CliRun& run);

// True if the document is withdrawn by now. Reads none of its text.
// Errors: as reads.
absl::StatusOr<bool> IsWithdrawnNow(CliRun& run, uint64_t ordinal);

// Checks that an unlisted document is withdrawn. Reads none of its text.
// Errors: DataLoss  it can be read. Others as reads.
absl::Status CheckWithdrawn(CliRun& run, uint64_t ordinal);

// True if both describe the same document of the same contents.
bool IsSameDocument(const v1::Document& a, const v1::Document& b);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_DOCUMENT_LISTING_H_
