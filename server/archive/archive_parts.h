// SPDX-License-Identifier: GPL-3.0-or-later
//
// Parts of an opened archive: an internal header of archive*.cc.
#ifndef QUIRE_SERVER_ARCHIVE_ARCHIVE_PARTS_H_
#define QUIRE_SERVER_ARCHIVE_ARCHIVE_PARTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "codecs/block_codec.h"
#include "codecs/payload/payload_codec.h"
#include "server/archive/archive.h"
#include "server/archive/files/archive_directory.h"
#include "server/archive/files/symbol_table_file.h"
#include "server/archive/format/manifest.h"
#include "server/archive/index/id_filter.h"
#include "server/archive/segment_reader.h"

namespace quire {

// Archives of more segments have filters: a look-up by id then searches only
// few segments.
inline constexpr size_t kUnfilteredSegmentsMax = 4;

// A segment as archives share it. Immutable.
struct Archive::OpenedSegment {
  SegmentFile file;
  // Reader of `file`.
  SegmentReader reader;
  ManifestSegment description;
  // Indexes that it was opened without.
  std::vector<absl::Status> index_damages;
  uint64_t id = 0;

  uint64_t memory_bytes_max() const {
    return SegmentReader::EstimateMemoryBytes(description);
  }
};

// The codec of the blocks, with its context. Immutable.
struct Archive::Codec {
  // The fields and files that a codec depends on; equal ones share it.
  struct Origin {
    CodecId id = CodecId::kUnspecified;
    uint32_t partition_size_bytes = 0;
    bool has_recipes = false;
    // Hashes, 0 without a file, and files.
    uint64_t dictionary_hash = 0;
    uint64_t symbol_table_hash = 0;
    FileIdentity dictionary_file = {};
    FileIdentity symbol_table_file = {};

    bool operator==(const Origin&) const = default;
  };

  // Returns the origin by a manifest and the opened files.
  static Origin OriginOf(const Manifest& manifest, const ArchiveFiles& files) {
    Origin origin = {
        .id = manifest.codec.id,
        .partition_size_bytes = manifest.codec.partition_size_bytes,
        .has_recipes = manifest.has_recipes};
    if (manifest.dictionary.has_value()) {
      origin.dictionary_hash = manifest.dictionary->hash;
      origin.dictionary_file = (*files.dictionary)->identity;
    }
    if (manifest.symbol_table.has_value()) {
      origin.symbol_table_hash = manifest.symbol_table->hash;
      origin.symbol_table_file = (*files.symbol_table)->identity;
    }
    return origin;
  }

  static uint64_t MemoryBytesMax(const Manifest& manifest) {
    return (manifest.dictionary.has_value() ? manifest.dictionary->size_bytes
                                            : 0) +
           (manifest.symbol_table.has_value() ? kSymbolTableMemoryBytes : 0);
  }

  Origin origin;
  std::shared_ptr<const CodecContext> context;
  std::unique_ptr<const PayloadCodec> codec;
  uint64_t memory_bytes_max = 0;
};

struct Archive::Segment {
  std::shared_ptr<const OpenedSegment> opened;
  // Filter of its ids; null in an archive of few segments.
  std::shared_ptr<const IdFilter> filter;
  // Start of the segment in the logical space and among the ordinals.
  uint64_t start = 0;
  uint64_t first_ordinal = 0;
  // End of the ordinals of the redacted states.
  uint64_t redacted_end = 0;

  const SegmentReader& reader() const { return opened->reader; }

  // Returns the document without its id. If damage hides whether it was
  // removed, it is described as a removed one.
  Document Describe(uint64_t local_ordinal) const;

  // Calls `visit` with each segment that may have the id, in order.
  static void VisitMayHave(const std::vector<Segment>& segments,
                           absl::string_view id,
                           absl::FunctionRef<void(const Segment&)> visit);

  // Number of its documents below the ordinal `end`.
  uint64_t CountBelow(uint64_t end) const {
    return end <= first_ordinal
               ? 0
               : std::min(end - first_ordinal, reader().documents().count());
  }

  // Returns the ranks of the documents of an id below the ordinal `end`.
  IdIndex::Ranks Find(absl::string_view id, uint64_t end) const;
  // Calls `visit` with them, divided where the index of captures does not cover
  // a part of an id's documents.
  void VisitRanks(absl::string_view id, uint64_t end,
                  absl::FunctionRef<void(IdIndex::Ranks)> visit) const;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_ARCHIVE_PARTS_H_
