// SPDX-License-Identifier: GPL-3.0-or-later
//
// Walks over the documents of all inputs of a build.
#ifndef QUIRE_SERVER_INGEST_DOCUMENT_WALK_H_
#define QUIRE_SERVER_INGEST_DOCUMENT_WALK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/ingest/input_failures.h"
#include "server/ingest/resume_parameters.h"
#include "server/ingest/sources/input_limits.h"
#include "server/ingest/sources/source.h"

namespace quire {

// Reads all sources once in each pass, in order, within the limits of inputs.
// The first pass decides which failures are tolerated; later passes skip the
// same documents. Thread-compatible.
class DocumentWalk {
 public:
  struct Options {
    // BuildOptions::input_size_bytes_max.
    std::optional<uint64_t> size_bytes_max;
    // BuildOptions::failures.
    InputFailures* failures = nullptr;
    // BuildOptions::on_note.
    NoteListener on_note;
    // BuildOptions::cancel.
    const std::atomic<bool>* cancel = nullptr;
    // ResumeOptions::describes_inputs.
    bool describes_sources = false;
  };

  using Visit =
      std::function<absl::Status(SourceReader&, const SourceDocument&)>;

  // `sources` must outlive the walk.
  DocumentWalk(std::span<const std::unique_ptr<Source>> sources,
               Options options);

  // Makes the first pass. Returns the size of all text; `on_counted` gets the
  // size so far. Reads all text if failures are tolerated or sources described.
  // Errors: those of Source and InputLimits; Cancelled.
  absl::StatusOr<uint64_t> Count(
      const std::function<void(uint64_t size_bytes)>& on_counted);

  // Returns a line for each source, as the first pass found it
  // (resume_parameters.h); none unless Options::describes_sources.
  std::string DescribeSources() const;

  // Makes a later pass. Errors: those of Source, InputLimits and `visit`;
  // Cancelled.
  absl::Status ForEachDocument(const Visit& visit);

  // Passes the text of the current document to `add`, through `buffer`.
  // REQUIRES for this and the next: `reader` is that of a visit.
  absl::Status ReadDocument(SourceReader& reader, std::vector<uint8_t>& buffer,
                            const std::function<absl::Status(ByteView)>& add);

  // Counts bytes of the current document. Errors: as InputLimits::AddText().
  absl::Status AddText(const SourceReader& reader, uint64_t size_bytes) {
    return limits_.AddText(*source_, reader, size_bytes);
  }

  // Errors: Cancelled  Options::cancel is true.
  absl::Status CheckCancelled() const;

  // Counts of the last complete pass.
  const SkippedEntries& skipped() const { return skipped_; }

  const DroppedAttributes& dropped() const { return limits_.dropped(); }

 private:
  absl::Status OpenSource();
  absl::Status ReadSource(const Visit& visit);
  // Returns false if nothing can be read after the document.
  absl::StatusOr<bool> VisitDocument(const SourceDocument& document,
                                     const Visit& visit);
  // Reads the document up to its failure, like the first pass.
  absl::StatusOr<bool> PassFailedDocument();
  // Reads and discards a piece of the current document; returns its size.
  absl::StatusOr<uint64_t> ReadOver();
  absl::Status CountDocument(
      SourceReader& reader, const SourceDocument& document,
      const std::function<void(uint64_t size_bytes)>& on_counted);
  // Notes that an earlier document has its id.
  void NoteRepeatedId(const SourceDocument& document);
  // Returns OK if the build continues without the failed part. A failure found
  // only in a later pass is in counted text and cannot be skipped.
  absl::Status TolerateFailure(const absl::Status& status);

  const std::span<const std::unique_ptr<Source>> sources_;
  const Options options_;
  InputLimits limits_;
  SkippedEntries skipped_;
  bool is_first_pass_ = false;
  // One for each source that the first pass has begun, if wanted.
  std::vector<SourceDigest> digests_;
  // Text counted by the first pass.
  uint64_t counted_bytes_ = 0;
  // Source being read, and its reader.
  size_t source_index_ = 0;
  const Source* source_ = nullptr;
  std::unique_ptr<SourceReader> reader_;
  // Index of the current document in its source.
  uint64_t document_index_ = 0;
  // Hashes of the given ids, in the first pass where notes are wanted.
  absl::flat_hash_set<uint64_t> given_ids_;
  // Buffer of ReadOver().
  std::vector<uint8_t> scratch_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_DOCUMENT_WALK_H_
