// SPDX-License-Identifier: GPL-3.0-or-later
//
// Passes of a build over its text, and their progress.
#ifndef QUIRE_SERVER_INGEST_BUILD_PASSES_H_
#define QUIRE_SERVER_INGEST_BUILD_PASSES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/archive/format/archive_description.h"
#include "server/ingest/build_captures.h"
#include "server/ingest/build_fields.h"
#include "server/ingest/build_options.h"
#include "server/ingest/deposit_tracker.h"
#include "server/ingest/document_walk.h"
#include "server/ingest/sources/source.h"
#include "server/ingest/sources/streams/byte_stream.h"

namespace quire {

// Reads the inputs of a build, or a file with the text that is stored instead,
// once in each phase, and reports progress. Thread-compatible.
class BuildPasses {
 public:
  using AddText = std::function<absl::Status(ByteView)>;

  // Both arguments must outlive the passes.
  // REQUIRES: Count() comes first.
  BuildPasses(std::span<const std::unique_ptr<Source>> sources,
              const BuildOptions& options);

  DocumentWalk& walk() { return walk_; }

  BuildFields& fields() { return fields_; }

  DepositTracker& deposits() { return deposits_; }

  // Starts a pass that adds the documents to an archive: StartDocument() comes
  // before the text of each, and EndDocument() after it.
  void StartDeposits() { deposits_.StartPass(); }

  // Errors: those of DepositTracker::Begin().
  absl::Status StartDocument(const SourceDocument& document) {
    return deposits_.Begin(walk_.source_index(), document);
  }

  // Ends the document, which has `size_bytes` of text.
  void EndDocument(uint64_t size_bytes) { deposits_.End(size_bytes); }

  // Returns the walk's current document for the archive, without its size. The
  // result is valid until the next call. Errors: those of
  // BuildFields::Convert().
  absl::StatusOr<NewDocument> ToNewDocument(const SourceReader& reader,
                                            const SourceDocument& document);

  const BuildProgress& progress() const { return progress_; }

  // Starts a phase that reads `total_bytes`, if that is known.
  // Errors: Cancelled.
  absl::Status StartPhase(BuildPhase phase,
                          std::optional<uint64_t> total_bytes);

  // Counts text that was read in this phase.
  void Advance(uint64_t size_bytes);

  // Counts stored blocks: text that an earlier build had encoded, and the
  // stored size of other text.
  void CountKept(uint64_t size_bytes) { progress_.kept_bytes += size_bytes; }

  void CountStored(uint64_t size_bytes) {
    progress_.stored_bytes += size_bytes;
  }

  // Makes the first pass; returns the size of all text. Errors: those of
  // DocumentWalk::Count() and BuildFields.
  absl::StatusOr<uint64_t> Count();

  // Passes the text of all documents to `add`, in pieces, but no more than the
  // phase's total: text that inputs have gained since they were counted is
  // encoded, but not sampled. Errors: those of the walk and of `add`.
  absl::Status FeedDocuments(const AddText& add);

  // The same for the first bytes of a temporary file, as many as the phase's
  // total. Errors: those of ReadStoredText() and of `add`; Cancelled.
  absl::Status FeedFile(const InputFile& file, const AddText& add);

  // Passes on the text of the walk's current document; counts it first.
  absl::Status FeedDocument(SourceReader& reader, const AddText& add);

 private:
  void Report();

  const BuildOptions& options_;
  BuildFields fields_;
  BuildCaptures captures_;
  DepositTracker deposits_;
  DocumentWalk walk_;
  BuildProgress progress_;
  uint64_t reported_bytes_ = 0;
  std::vector<uint8_t> buffer_;
  // Those of the current document.
  std::vector<FieldValue> field_values_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_BUILD_PASSES_H_
