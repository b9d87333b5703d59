// SPDX-License-Identifier: GPL-3.0-or-later
//
// A representative sample of a collection's documents.
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
  // Limit on the text in memory. A sample can exceed it by one key (see below).
  uint64_t size_bytes_max = uint64_t{256} << 20;
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
// is a document of the sample.
// Thread-compatible.
class CollectionSample {
 public:
  enum class Part { kAll, kFirstHalf, kSecondHalf };

  // Reads all sources twice: once for names and sizes, once for text. Keeps
  // everything if there are at most `options.size_bytes_max` bytes, or at most
  // 64 MiB of them; otherwise an eighth, but at least 64 MiB. Blocks on the
  // disk.
  // Errors: those of DocumentWalk; InvalidArgument  the sources hold no text.
  static absl::StatusOr<CollectionSample> Take(
      std::span<const std::unique_ptr<Source>> sources,
      const SampleOptions& options);

  // Size of all documents of the sources.
  uint64_t text_size_bytes() const { return text_size_bytes_; }

  uint64_t document_count() const { return document_count_; }

  // Size of the sample.
  uint64_t size_bytes() const { return size_bytes_; }

  bool is_whole() const { return size_bytes_ == text_size_bytes_; }

  // Returns the documents of the part, in the order of the sources. Both halves
  // have about equally much text, and different keys. The sample must outlive
  // the source.
  std::unique_ptr<Source> SourceOf(Part part) const;

 private:
  friend class SampleTaker;
  friend class SampleSource;

  struct Piece {
    SourceDocument document;
    std::string text;
    Part half = Part::kFirstHalf;
  };

  uint64_t text_size_bytes_ = 0;
  uint64_t document_count_ = 0;
  uint64_t size_bytes_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_PLANNER_COLLECTION_SAMPLE_H_
