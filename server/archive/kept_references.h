// SPDX-License-Identifier: GPL-3.0-or-later
//
// Records of a crawl that stay and refer to records that go.
#ifndef QUIRE_SERVER_ARCHIVE_KEPT_REFERENCES_H_
#define QUIRE_SERVER_ARCHIVE_KEPT_REFERENCES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/positions.h"
#include "server/archive/archive.h"
#include "server/archive/archive_part.h"

namespace quire {

struct KeptReferences {
  static constexpr size_t kNamesMax = 10;

  // Revisits that have the digest of a capture that goes.
  uint64_t revisit_count = 0;
  // Those of which no capture with the payload stays.
  uint64_t without_payload_count = 0;
  // Ids of the first of them in the index of captures.
  std::vector<std::string> revisits = {};
  // Records of the types metadata and conversion whose ids have no host, so
  // that they may refer to any record by WARC-Refers-To; and the first ids.
  uint64_t unlocated_count = 0;
  std::vector<std::string> unlocated = {};
  // Why they are not known; empty: they are.
  std::string failure = {};
};

struct ReferenceSearch {
  // True for the documents that go.
  std::function<bool(DocumentOrdinal)> is_removed;
  // Counts unlocated records.
  bool with_unlocated = false;
  // Must not return parts that are not at hand.
  ArchivePartLoader load;
  // Called in between, unless it is empty; an error ends the search.
  std::function<absl::Status()> check = {};
};

// Compares the digests of captures. Finds no revisits in segments without an
// index of captures, nor those whose records state no digest. Reads that index
// twice if a document of the archive is a revisit, and no text. Memory:
// EstimateReferencesBytes(). Thread-safe if the functions are.
// Errors: DataLoss; those of `load` and `check`.
absl::StatusOr<KeptReferences> FindKeptReferences(
    const Archive& archive, const ReferenceSearch& search);

// Returns about the memory of FindKeptReferences(), in bytes.
uint64_t EstimateReferencesBytes(const Archive& archive,
                                 uint64_t removed_count);

// Returns a sentence without a full stop for each kind that was found.
std::vector<std::string> DescribeReferences(const KeptReferences& references);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_KEPT_REFERENCES_H_
