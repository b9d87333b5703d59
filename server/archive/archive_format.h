// SPDX-License-Identifier: GPL-3.0-or-later
//
// The fixed structures of an archive's files, as FORMAT.md defines them, and
// the numbers that must never change. Everything here is pure: bytes in, struct
// out, or the reverse. A struct that a Parse function returned has been checked
// against its checksum and against every limit that can be known without the
// rest of the file, and is safe to allocate from where it says so.
#ifndef QUIRE_SERVER_ARCHIVE_ARCHIVE_FORMAT_H_
#define QUIRE_SERVER_ARCHIVE_ARCHIVE_FORMAT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"

namespace quire {

inline constexpr uint32_t kFormatVersion = 1;

using Magic = std::array<uint8_t, 8>;
// The first byte is not ASCII and the last is a newline, so that a transfer in
// text mode shows.
inline constexpr Magic kManifestMagic = {0x8A, 'Q', 'u', 'i',
                                         'r',  'e', 'M', '\n'};
inline constexpr Magic kDictionaryMagic = {0x8A, 'Q', 'u', 'i',
                                           'r',  'e', 'D', '\n'};
inline constexpr Magic kSegmentMagic = {0x8A, 'Q', 'u', 'i',
                                        'r',  'e', 'S', '\n'};
inline constexpr Magic kSegmentEndMagic = {0x8A, 'Q', 'u', 'i',
                                           'r',  'e', 'E', '\n'};

// Limits (FORMAT.md, "Limits").
inline constexpr uint32_t kBlockSizeBytesMin = 4096;
// A power of two from kBlockSizeBytesMin to kBlockSizeBytesMax.
bool IsBlockSize(uint32_t block_size_bytes);
inline constexpr uint32_t kSegmentNumberMax = 999999;
inline constexpr size_t kSegmentCountMax = 65536;
inline constexpr uint64_t kSegmentBlockCountMax = (uint64_t{1} << 40) - 1;
inline constexpr uint64_t kSegmentDocumentCountMax = (uint64_t{1} << 32) - 1;
inline constexpr uint64_t kLogicalSizeBytesMax = (uint64_t{1} << 62) - 1;
inline constexpr uint64_t kSectionSizeBytesMax = uint64_t{1} << 40;
inline constexpr uint64_t kDictionarySizeBytesMax = (uint64_t{1} << 31) - 1;
inline constexpr size_t kDocumentIdSizeBytesMax = 65535;
inline constexpr size_t kAttributeSizeBytesMax = 65535;
// Capture times, in milliseconds either side of 1970.
inline constexpr int64_t kCaptureTimeMsMax = int64_t{1} << 53;
// Decompressed bytes that one stored byte of a section or dictionary may stand
// for: above what any of the methods reaches.
inline constexpr uint64_t kExpansionMax = 65536;

inline constexpr char kManifestFileName[] = "MANIFEST";
// "segment-000017".
std::string SegmentFileName(uint32_t number);
// "dictionary-0123456789abcdef".
std::string DictionaryFileName(uint64_t hash);
// Whether a file of this name can belong to an archive of this version.
bool IsArchiveFileName(absl::string_view name);

// How a section or a dictionary is compressed. Never renumbered.
enum class CompressionMethod : uint32_t {
  kNone = 0,
  kZstd = 1,
  kXz = 2,
};

// --- Segment header, at the start of the file ---

inline constexpr size_t kSegmentHeaderSizeBytes = 32;

struct SegmentHeader {
  uint32_t number = 0;
  uint32_t block_size_bytes = 0;
  uint32_t codec_id = 0;
};

std::string EncodeSegmentHeader(const SegmentHeader& header);

// REQUIRES for all Parse functions: `bytes` has exactly the structure's size.
// Errors: DataLoss            not this structure, or damaged.
//         FailedPrecondition  of a later version of the format.
absl::StatusOr<SegmentHeader> ParseSegmentHeader(ByteView bytes);

// --- Block frame: word, payload, checksum ---

inline constexpr size_t kFrameWordSizeBytes = 4;
inline constexpr size_t kFrameOverheadSizeBytes = kFrameWordSizeBytes + 8;
inline constexpr uint32_t kPayloadSizeBytesMax = (uint32_t{1} << 24) - 1;

struct FrameWord {
  uint32_t payload_size_bytes = 0;
  // The payload is the text itself.
  bool is_raw = false;
};

uint32_t EncodeFrameWord(const FrameWord& word);
// Errors: DataLoss  a reserved bit is set, or there is no payload.
absl::StatusOr<FrameWord> ParseFrameWord(uint32_t word);

// Checksum of a frame's word and payload, seeded with the place of the block,
// so that one in the wrong place shows.
// REQUIRES: number and index within the limits above.
inline uint64_t FrameChecksum(uint32_t segment_number, uint64_t block_index,
                              ByteView word_and_payload) {
  return Checksum64(word_and_payload,
                    (uint64_t{segment_number} << 40) | block_index);
}

// Folds the next block's checksum into the segment's.
uint64_t ExtendBlockChain(uint64_t chain, uint64_t block_checksum);

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
};
// A reader skips sections of unknown type that carry this bit, and refuses a
// segment with others.
inline constexpr uint32_t kSectionIgnorableBit = uint32_t{1} << 31;

inline constexpr size_t kSectionEntrySizeBytes = 40;
inline constexpr size_t kTrailerSizeBytes = 72;
inline constexpr size_t kSectionCountMax = 16;
// Reading this much at the end of a segment gets table and trailer in one go.
inline constexpr size_t kFooterSizeBytesMax =
    kSectionCountMax * kSectionEntrySizeBytes + kTrailerSizeBytes;

struct SectionEntry {
  // As on disk: a SectionType, or one from the future.
  uint32_t type = 0;
  CompressionMethod method = CompressionMethod::kNone;
  // In the segment file.
  uint64_t offset = 0;
  uint64_t stored_size_bytes = 0;
  // Decompressed; at most stored_size_bytes * kExpansionMax.
  uint64_t size_bytes = 0;
  // Of the stored bytes.
  uint64_t checksum = 0;
};

// Section table and trailer.
struct SegmentFooter {
  std::vector<SectionEntry> sections;
  uint64_t block_count = 0;
  uint64_t document_count = 0;
  // Of the documents and of the blocks' text.
  uint64_t size_bytes = 0;
  // Length of all ids together.
  uint64_t id_size_bytes = 0;
  // Where the last frame ends and the first section begins.
  uint64_t blocks_end = 0;
  uint64_t block_chain = 0;
  // Of table and trailer, itself excluded; filled in by both functions below.
  uint64_t checksum = 0;

  const SectionEntry* Find(SectionType type) const;
};

std::string EncodeSegmentFooter(SegmentFooter& footer, uint32_t segment_number);

// The number of bytes that table and trailer take, from the trailer alone.
// REQUIRES: trailer.size() == kTrailerSizeBytes.
absl::StatusOr<size_t> SegmentFooterSizeBytes(ByteView trailer);

// `bytes` is table and trailer, the last bytes of a file of `file_size_bytes`.
// In what it returns, sections tile the file from blocks_end to the table, the
// counts fit each other, the header and the limits, and may be allocated from.
absl::StatusOr<SegmentFooter> ParseSegmentFooter(ByteView bytes,
                                                 uint64_t file_size_bytes,
                                                 const SegmentHeader& header);

// --- Dictionary header, at the start of the file ---

inline constexpr size_t kDictionaryHeaderSizeBytes = 56;

struct DictionaryHeader {
  CompressionMethod method = CompressionMethod::kNone;
  uint64_t size_bytes = 0;
  uint64_t stored_size_bytes = 0;
  // Of the text; its name.
  uint64_t hash = 0;
  // Of the stored bytes.
  uint64_t stored_checksum = 0;
};

std::string EncodeDictionaryHeader(const DictionaryHeader& header);
absl::StatusOr<DictionaryHeader> ParseDictionaryHeader(ByteView bytes);

// --- For messages ---

// 16 hexadecimal digits.
std::string FormatChecksum(uint64_t checksum);

// DataLoss: "WHAT is FOUND, expected EXPECTED; ..." in the one wording that all
// readers use.
absl::Status ChecksumMismatch(absl::string_view what, uint64_t found,
                              uint64_t expected);

// Checks an 8-byte magic and the version after it; `what` names the structure.
absl::Status CheckMagicAndVersion(ByteView bytes, const Magic& magic,
                                  absl::string_view what);

// `status` with "FILE: " before its message.
absl::Status InFile(absl::string_view file, const absl::Status& status);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_ARCHIVE_FORMAT_H_
