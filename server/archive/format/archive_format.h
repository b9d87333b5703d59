// SPDX-License-Identifier: GPL-3.0-or-later
//
// The common parts of an archive's files, as FORMAT.md defines them: limits,
// names, magics, and the headers of dictionary and symbol table. Segments are
// in segment_format.h, block frames in block_frame.h, the manifest in
// manifest.h.
//
// All functions in these headers are pure: bytes in, struct out, or the
// reverse. Parse functions check a struct against its checksum and against
// every limit that can be checked without the rest of the file; sizes are safe
// to allocate by where the comment says so.
#ifndef QUIRE_SERVER_ARCHIVE_FORMAT_ARCHIVE_FORMAT_H_
#define QUIRE_SERVER_ARCHIVE_FORMAT_ARCHIVE_FORMAT_H_

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/endian.h"
#include "server/archive/format/archive_description.h"

namespace quire {

inline constexpr uint32_t kFormatVersion = 4;

using Magic = std::array<uint8_t, 8>;
// The first byte is not ASCII and the last is a newline, so that a transfer in
// text mode is detected.
inline constexpr Magic kManifestMagic = {0x8A, 'Q', 'u', 'i',
                                         'r',  'e', 'M', '\n'};
inline constexpr Magic kDictionaryMagic = {0x8A, 'Q', 'u', 'i',
                                           'r',  'e', 'D', '\n'};
inline constexpr Magic kSymbolTableMagic = {0x8A, 'Q', 'u', 'i',
                                            'r',  'e', 'T', '\n'};
inline constexpr Magic kSegmentMagic = {0x8A, 'Q', 'u', 'i',
                                        'r',  'e', 'S', '\n'};
inline constexpr Magic kSegmentEndMagic = {0x8A, 'Q', 'u', 'i',
                                           'r',  'e', 'E', '\n'};

// Limits (FORMAT.md, "Limits").
inline constexpr uint32_t kBlockSizeBytesMin = 4096;
// A power of two from kBlockSizeBytesMin to kBlockSizeBytesMax.
bool IsBlockSize(uint32_t block_size_bytes);
inline constexpr uint32_t kSegmentNumberMax = (uint32_t{1} << 24) - 1;
inline constexpr size_t kSegmentCountMax = 65536;
inline constexpr uint64_t kSegmentBlockCountMax = (uint64_t{1} << 40) - 1;
inline constexpr uint64_t kSegmentDocumentCountMax = (uint64_t{1} << 32) - 1;
inline constexpr uint64_t kLogicalSizeBytesMax = (uint64_t{1} << 62) - 1;
inline constexpr uint64_t kSectionSizeBytesMax = uint64_t{1} << 40;
inline constexpr uint64_t kDictionaryTextSizeBytesMax = (uint64_t{1} << 31) - 1;
// Sizes of a table without symbols and of the largest table.
inline constexpr uint32_t kSymbolTableSizeBytesMin = 17;
inline constexpr uint32_t kSymbolTableSizeBytesMax = 2057;
inline constexpr size_t kDocumentIdSizeBytesMax = 65535;
inline constexpr size_t kAttributeSizeBytesMax = 65535;
// Of the index of captures: that of SurtKey(), and of HTTP.
inline constexpr size_t kCaptureKeySizeBytesMax = 65535;
inline constexpr uint32_t kHttpStatusMax = 999;
// Limit on capture times, in milliseconds before or after 1970.
inline constexpr int64_t kCaptureTimeMsMax = int64_t{1} << 53;
// Record type of a document that was removed (FORMAT.md, "Compatibility").
inline constexpr char kWithdrawnRecordType[] = "withdrawn";

// True for a document that was removed. A record of a crawl can have the same
// type, and has an id or a time.
inline bool IsRedacted(const Document& document) {
  return document.record_type == kWithdrawnRecordType && document.id.empty() &&
         document.media_type.empty() && !document.capture_time_ms.has_value();
}

// True for printable ASCII. Crawled pages claim arbitrary types, and texts of
// the API must be UTF-8: other media types and record types count as unset, as
// empty ones do.
inline bool IsPlainText(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c >= ' ' && c <= '~';
  });
}

// Upper bound on the decompressed bytes per stored byte of a section or
// dictionary; no method reaches it.
inline constexpr uint64_t kExpansionMax = 65536;

inline constexpr char kManifestFileName[] = "MANIFEST";
// "segment-00000017".
std::string SegmentFileName(uint32_t number);
inline constexpr char kDictionaryFilePrefix[] = "dictionary-";
inline constexpr char kSymbolTableFilePrefix[] = "symbols-";
// "dictionary-0123456789abcdef".
std::string DictionaryFileName(uint64_t hash);
// "symbols-0123456789abcdef".
std::string SymbolTableFileName(uint64_t hash);
bool IsSegmentFileName(absl::string_view name);
// True if a file of this name can belong to an archive of this version.
bool IsArchiveFileName(absl::string_view name);
// Journal of a resumable writer; never part of an archive.
inline constexpr char kJournalFileName[] = "JOURNAL";

// Compression method of a section or dictionary. Never renumbered.
enum class CompressionMethod : uint32_t {
  kNone = 0,
  kZstd = 1,
  kXz = 2,
};

// --- Dictionary header, at the start of the file ---

inline constexpr size_t kDictionaryHeaderSizeBytes = 56;

struct DictionaryHeader {
  CompressionMethod method = CompressionMethod::kNone;
  uint64_t size_bytes = 0;
  uint64_t stored_size_bytes = 0;
  // Checksum of the text; the file's name has it.
  uint64_t hash = 0;
  // Checksum of the stored bytes.
  uint64_t stored_checksum = 0;
};

std::string EncodeDictionaryHeader(const DictionaryHeader& header);
// REQUIRES: bytes.size() == kDictionaryHeaderSizeBytes.
// Errors: DataLoss            not a dictionary, or damaged.
//         FailedPrecondition  of a later version of the format.
absl::StatusOr<DictionaryHeader> ParseDictionaryHeader(ByteView bytes);

// --- Symbol table ---

// Size of the file without the table: magic, version and size before it, and a
// checksum of them all after it.
inline constexpr size_t kSymbolTableOverheadBytes = 24;

// Returns the whole file. REQUIRES: table.size() <= kSymbolTableSizeBytesMax.
std::string EncodeSymbolTableFile(ByteView table);
// Returns the table of such a file as a view into it. Does not check the table
// itself.
// Errors: as ParseDictionaryHeader().
absl::StatusOr<ByteView> ParseSymbolTableFile(ByteView file);

// --- Shared by the parsers ---

// Converts a value from disk to a CompressionMethod; `what` names the
// structure.
// Errors: FailedPrecondition  not a method of this version.
absl::StatusOr<CompressionMethod> ParseCompressionMethod(
    uint32_t value, absl::string_view what);

// True if `size_bytes` can be the decompressed size of `stored_size_bytes`.
bool IsPlausibleExpansion(CompressionMethod method, uint64_t stored_size_bytes,
                          uint64_t size_bytes);

// Appends fields.
class FieldWriter {
 public:
  void Bytes(ByteView bytes) {
    out_.append(AsText(bytes).data(), bytes.size());
  }

  template <std::unsigned_integral T>
  void Integer(T value) {
    uint8_t bytes[sizeof(T)];
    StoreLittleEndian(value, bytes);
    Bytes(bytes);
  }

  // Checksum of all fields so far.
  uint64_t Checksum(uint64_t seed = 0) const {
    return Checksum64(AsBytes(out_), seed);
  }

  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

// Reads fields in order. REQUIRES: the bytes contain them.
class FieldReader {
 public:
  explicit FieldReader(ByteView in) : in_(in) {}

  template <std::unsigned_integral T>
  T Integer() {
    const T value = LoadLittleEndian<T>(in_.data());
    in_ = in_.subspan(sizeof(T));
    return value;
  }

  void Skip(size_t size) { in_ = in_.subspan(size); }

 private:
  ByteView in_;
};

// 16 hexadecimal digits.
std::string FormatChecksum(uint64_t checksum);

// DataLoss: "WHAT", and what to do.
absl::Status Damaged(absl::string_view what);

// Moves damage to `damages`, and returns other errors.
absl::Status NoteDamage(const absl::Status& status,
                        std::vector<absl::Status>& damages);

// DataLoss: "WHAT is FOUND, expected EXPECTED; ...", in the same words for all
// readers.
absl::Status ChecksumMismatch(absl::string_view what, uint64_t found,
                              uint64_t expected);

// Checks an 8-byte magic and the version after it; `what` names the structure.
// Errors: DataLoss            another magic, or version 0.
//         FailedPrecondition  a version other than kFormatVersion.
absl::Status CheckMagicAndVersion(ByteView bytes, const Magic& magic,
                                  absl::string_view what);

// Returns `status` with "PART: " before its message: the name of a file or of a
// section.
absl::Status InFile(absl::string_view part, const absl::Status& status);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FORMAT_ARCHIVE_FORMAT_H_
