// SPDX-License-Identifier: GPL-3.0-or-later
//
// The documents that a plan builds archives of: all of a collection, or a
// representative sample.
#ifndef QUIRE_SERVER_PLANNER_COLLECTION_SAMPLE_H_
#define QUIRE_SERVER_PLANNER_COLLECTION_SAMPLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "server/ingest/sources/source.h"

namespace quire {

struct SampleOptions {
  // Approximate size of a sample, which is in memory. It varies by some keys
  // (see below).
  uint64_t size_bytes = uint64_t{256} << 20;
  // Size of the full collection; 0: same as the sources.
  uint64_t collection_size_bytes = 0;
  // BuildOptions::input_size_bytes_max.
  std::optional<uint64_t> input_size_bytes_max = std::nullopt;
  // Ends the reading with Cancelled; may be null.
  const std::atomic<bool>* cancel = nullptr;
};

// A sample keeps runs of neighbouring documents, because blocks hold
// neighbours. The key of a run consists of the name of its directory and that
// of its first document, without the directories above. All runs of a key are
// kept or none: of a collection with several releases, a sample has all
// releases of some runs, and therefore the collection's duplicates. Documents
// are divided into pieces of 1 MiB, whose number is part of the key; each piece
// is a document of the sample. The kept keys are spread evenly over the
// sources. Thread-compatible.
class CollectionSample {
 public:
  enum class Part { kAll, kFirstHalf, kSecondHalf };

  // Reads names and sizes of all sources. If these are the full collection and
  // have at most four times `options.size_bytes`, they stand for themselves.
  // Otherwise reads all sources once more, and keeps a sample. The sources must
  // outlive the result. Blocks on the disk.
  // Errors: those of DocumentWalk; InvalidArgument  the sources hold no text.
  static absl::StatusOr<CollectionSample> Take(
      std::span<const std::unique_ptr<Source>> sources,
      const SampleOptions& options);

  std::span<const std::unique_ptr<Source>> sources() const { return sources_; }

  // Size of all documents of the sources.
  uint64_t text_size_bytes() const { return text_size_bytes_; }

  uint64_t document_count() const { return document_count_; }

  uint64_t collection_size_bytes() const { return collection_size_bytes_; }

  // Size of the sample, or of all text.
  uint64_t size_bytes() const { return size_bytes_; }

  // True if the sources stand for themselves.
  bool is_whole() const { return size_bytes_ == collection_size_bytes_; }

  // Returns the documents of the part, in the order of the sources. Both halves
  // have equally many keys, and different ones. The sample must outlive
  // the source. REQUIRES: !is_whole().
  std::unique_ptr<Source> SourceOf(Part part) const;

 private:
  friend class SampleTaker;
  friend class SampleSource;

  struct Piece {
    SourceDocument document;
    std::string text;
    Part half = Part::kFirstHalf;
  };

  std::span<const std::unique_ptr<Source>> sources_;
  uint64_t text_size_bytes_ = 0;
  uint64_t document_count_ = 0;
  uint64_t collection_size_bytes_ = 0;
  uint64_t size_bytes_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_PLANNER_COLLECTION_SAMPLE_H_
