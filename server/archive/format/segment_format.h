// SPDX-License-Identifier: GPL-3.0-or-later
//
// The fixed structures of a segment file (FORMAT.md, "Segment"): the header at
// its start, the section table and trailer at its end.
#ifndef QUIRE_SERVER_ARCHIVE_FORMAT_SEGMENT_FORMAT_H_
#define QUIRE_SERVER_ARCHIVE_FORMAT_SEGMENT_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/archive/format/archive_format.h"

namespace quire {

// --- Segment header, at the start of the file ---

inline constexpr size_t kSegmentHeaderSizeBytes = 48;

// Lets a reader decode blocks in order without manifest and footer.
struct SegmentHeader {
  uint32_t number = 0;
  uint32_t block_size_bytes = 0;
  uint32_t codec_id = 0;
  // 0 without partitions.
  uint32_t partition_size_bytes = 0;
  // Checksum of the dictionary's text; 0 without a dictionary.
  uint64_t dictionary_hash = 0;

  bool operator==(const SegmentHeader&) const = default;
};

std::string EncodeSegmentHeader(const SegmentHeader& header);

// REQUIRES for all Parse functions: `bytes` has exactly the structure's size.
// Errors: DataLoss            not this structure, or damaged.
//         FailedPrecondition  of a later version of the format.
absl::StatusOr<SegmentHeader> ParseSegmentHeader(ByteView bytes);

// --- Section table and trailer, at the end of the file ---

// Never renumbered.
enum class SectionType : uint32_t {
  kBlockSizes = 1,
  kDocumentSizes = 2,
  kDocumentIds = 3,
  kDocumentOrder = 4,
  kCaptureTimes = 5,
  kMediaTypes = 6,
  kRecordTypes = 7,
  kLayout = 8,
  kBlockSpans = 9,
  kIdRuns = 11,
  // These carry kSectionIgnorableBit. Only verification reads the checksums,
  // and the data of a container are read part by part, when they are needed.
  kTextChecksums = 0x8000000A,
  kContainerDirectory = 0x8000000B,
  kContainerData = 0x8000000C,
};
// True for the types above.
bool IsKnownSectionType(uint32_t type);
// Name for messages: "document ids"; "unknown section" for other types.
absl::string_view SectionName(uint32_t type);
// A reader skips sections of unknown type that carry this bit, and refuses a
// segment with others.
inline constexpr uint32_t kSectionIgnorableBit = uint32_t{1} << 31;

inline constexpr size_t kSectionEntrySizeBytes = 40;
inline constexpr size_t kTrailerSizeBytes = 72;
inline constexpr size_t kSectionCountMax = 16;
// Upper bound on the size of table and trailer: one read of this size at the
// end of a segment gets both.
inline constexpr size_t kFooterSizeBytesMax =
    kSectionCountMax * kSectionEntrySizeBytes + kTrailerSizeBytes;

struct SectionEntry {
  // Type as on disk: a SectionType, or one of a later version.
  uint32_t type = 0;
  CompressionMethod method = CompressionMethod::kNone;
  // Offset in the segment file.
  uint64_t offset = 0;
  uint64_t stored_size_bytes = 0;
  // Decompressed size; at most stored_size_bytes * kExpansionMax.
  uint64_t size_bytes = 0;
  // Checksum of the stored bytes.
  uint64_t checksum = 0;
};

// Section table and trailer.
struct SegmentFooter {
  std::vector<SectionEntry> sections;
  uint64_t block_count = 0;
  uint64_t document_count = 0;
  // Size of the documents' text.
  uint64_t size_bytes = 0;
  // Length of all ids in the section of document ids together.
  uint64_t id_size_bytes = 0;
  // Offset at which the last frame ends and the first section begins.
  uint64_t blocks_end = 0;
  uint64_t block_chain = 0;
  // Documents whose ids are not in that section, but computed from id runs.
  uint32_t derived_id_count = 0;
  // Checksum of table and trailer, without itself; set by both functions below.
  uint64_t checksum = 0;

  const SectionEntry* Find(SectionType type) const;
};

std::string EncodeSegmentFooter(SegmentFooter& footer, uint32_t segment_number);

// Sets the magic at the end of table and trailer, for offline use: it is
// outside their checksum, which proves them without it.
// REQUIRES: footer.size() >= kTrailerSizeBytes.
void RestoreEndMagic(MutableByteView footer);

// Returns the size of table and trailer, from the trailer alone.
// REQUIRES: trailer.size() == kTrailerSizeBytes.
absl::StatusOr<size_t> SegmentFooterSizeBytes(ByteView trailer);

// `bytes` is table and trailer, the last bytes of a file of `file_size_bytes`.
// In the result, sections tile the file from blocks_end to the table, and the
// counts fit each other and the limits and are safe to allocate by.
absl::StatusOr<SegmentFooter> ParseSegmentFooter(ByteView bytes,
                                                 uint64_t file_size_bytes,
                                                 uint32_t segment_number);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FORMAT_SEGMENT_FORMAT_H_
