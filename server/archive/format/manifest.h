// SPDX-License-Identifier: GPL-3.0-or-later
//
// The MANIFEST of an archive: its description and the list of its files.
#ifndef QUIRE_SERVER_ARCHIVE_FORMAT_MANIFEST_H_
#define QUIRE_SERVER_ARCHIVE_FORMAT_MANIFEST_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/block_codec.h"
#include "server/archive/format/archive_description.h"

namespace quire {

inline constexpr size_t kManifestFileSizeBytesMax = size_t{64} << 20;
// Limits on the number of messages about unread inputs, and on the bytes of
// each.
inline constexpr size_t kUnreadInputsMax = 20;
inline constexpr size_t kUnreadInputSizeBytesMax = 4096;
inline constexpr size_t kWriterSizeBytesMax = 256;
inline constexpr size_t kChoiceSizeBytesMax = 1024;
inline constexpr size_t kHistoryCountMax = 4096;
inline constexpr uint32_t kSlicesPerMibMax = uint32_t{1} << 20;

struct ManifestDictionary {
  uint64_t hash = 0;
  uint64_t size_bytes = 0;
  uint64_t file_size_bytes = 0;
};

struct ManifestSymbolTable {
  uint64_t hash = 0;
  uint32_t size_bytes = 0;
};

struct ManifestSection {
  uint32_t type = 0;
  uint64_t size_bytes = 0;
  uint64_t stored_size_bytes = 0;

  bool operator==(const ManifestSection&) const = default;
};

struct ManifestSegment {
  uint32_t number = 0;
  uint64_t file_size_bytes = 0;
  uint64_t block_count = 0;
  uint64_t document_count = 0;
  uint64_t size_bytes = 0;
  uint64_t id_size_bytes = 0;
  uint64_t footer_checksum = 0;
  std::vector<ManifestSection> sections;
  // Size of the text in its blocks.
  uint64_t stored_text_size_bytes = 0;
  uint64_t run_count = 0;
  int codec_level = 0;
  uint64_t span_count = 0;
  uint32_t derived_id_count = 0;

  bool has_layout() const { return run_count > 1; }

  // True if the counts allow that all blocks have `block_size_bytes`, except
  // one with less. They prove neither the size nor which block that is: it can
  // be the first, or two spans can have other sizes.
  bool HasEqualBlocks(uint32_t block_size_bytes) const;

  bool operator==(const ManifestSegment&) const = default;
};

// An earlier state of the archive.
struct ManifestState {
  std::array<uint8_t, 16> uuid = {};
  uint64_t size_bytes = 0;
  uint64_t document_count = 0;
};

// manifest.proto explains the fields.
struct Manifest {
  // The level is that of the last segment; without segments, the one that the
  // first will have.
  CodecSpec codec;
  uint32_t block_size_bytes = 0;
  uint32_t block_size_bytes_max = 0;
  uint32_t slices_per_mib_max = 0;
  uint32_t next_segment_number = 0;
  std::string writer;
  std::string choice;
  std::vector<ManifestState> history;
  std::vector<ManifestState> redacted_states;
  std::optional<ManifestDictionary> dictionary;
  std::optional<ManifestSymbolTable> symbol_table;
  std::vector<ManifestSegment> segments;
  uint64_t unread_input_count = 0;
  // At most kUnreadInputsMax.
  std::vector<std::string> unread_inputs;
  // In order of codec.
  std::vector<MemberBlocks> members;
  // In order of container.
  std::vector<FoundMembers> found_members;
  // See ArchiveInfo.
  bool has_recipes = false;

  using Uuid = std::array<uint8_t, 16>;
  Uuid uuid = {};

  // Set by ParseManifest(): the message has fields that this program does not
  // know. EncodeManifest() drops them.
  bool has_unknown_fields = false;

  // The uuid that FORMAT.md derives from the other fields.
  Uuid DeriveUuid() const;
  // Returns the manifest of an archive without documents that has the encoding
  // of this one: codec, level, sizes, dictionary and symbol table. Keeps what
  // people may read on how they were chosen, and the next segment's number.
  Manifest WithoutDocuments() const;

  // Sums over the segments. The stored size includes
  // `manifest_file_size_bytes`.
  ArchiveInfo Describe(uint64_t manifest_file_size_bytes) const;
};

// Returns the whole file.
std::string EncodeManifest(const Manifest& manifest);

// `file` is the whole file, untrusted. The result is within all limits, its
// sums do not overflow, and this program knows its codec.
// Errors: DataLoss            damaged or contradictory.
//         FailedPrecondition  of a later version, or a codec not known here.
absl::StatusOr<Manifest> ParseManifest(ByteView file);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FORMAT_MANIFEST_H_
