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
// same documents. A failure that only a later pass finds, as of a file that
// became shorter, is tolerated too, unless sources are described: the document
// then ends early, or is left out. Thread-compatible.
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
    // Called for each document of the first pass; may be empty. An error ends
    // the pass.
    std::function<absl::Status(SourceReader&, const SourceDocument&)>
        on_first_read = {};
    // Called for each document of the first pass with the size of its text; may
    // be empty.
    std::function<void(const SourceDocument&, uint64_t size_bytes)> on_counted =
        {};
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

  // Index of the source of the current document.
  size_t source_index() const { return source_index_; }

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
    read_.text_bytes += size_bytes;
    return limits_.AddText(*source_, reader, size_bytes);
  }

  // Errors: Cancelled  Options::cancel is true.
  absl::Status CheckCancelled() const;

  // Those of all sources.
  UnreadInputs unread_inputs() const;

  // Counts of the last complete pass.
  const SkippedEntries& skipped() const { return skipped_; }

  const DroppedAttributes& dropped() const { return limits_.dropped(); }

 private:
  class LaterReader;

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
  // Remembers the current document until its text is checked.
  absl::Status NoteUnchecked(const SourceDocument& document);
  // Returns what to say of documents whose check has failed, and forgets them.
  // `has_ended` is true if the checks that are awaited cannot pass any more.
  // Those that await `except` stay.
  std::string TakeDoubtful(bool has_ended, const TextCheck* except = nullptr);
  // Counts them as a failure.
  absl::Status ReportDoubtful(bool has_ended,
                              const TextCheck* except = nullptr);
  // Notes that an earlier document has its id.
  void NoteRepeatedId(const SourceDocument& document);

  // True if failures that only a later pass finds are tolerated.
  bool ToleratesChanges() const {
    return options_.failures != nullptr && !options_.describes_sources;
  }

  // Returns OK if the build continues without the failed part.
  // `more` is appended to the recorded message.
  absl::Status TolerateFailure(const absl::Status& status,
                               absl::string_view more = "");

  // Amounts that a pass reads of a source.
  struct SourceCount {
    uint64_t documents = 0;
    uint64_t text_bytes = 0;

    bool operator==(const SourceCount&) const = default;
  };

  // Notes that the current source is not as the first pass found it; once.
  void NoteChange();

  // Documents of the first pass that await a check.
  struct Unchecked {
    std::shared_ptr<const TextCheck> check;
    uint64_t count = 0;
    // Ids.
    std::string first;
    std::string last;
  };

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
  // Amounts of the current source up to the current document, and of each
  // source in the first pass.
  SourceCount read_;
  std::vector<SourceCount> first_reads_;
  // In the first pass, if failures are tolerated. The text of a document awaits
  // one check, or as many as there are compressed files in each other.
  std::vector<Unchecked> unchecked_;
  // Hashes of the given ids, in the first pass where notes are wanted.
  absl::flat_hash_set<uint64_t> given_ids_;
  // Buffer of ReadOver().
  std::vector<uint8_t> scratch_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_DOCUMENT_WALK_H_
