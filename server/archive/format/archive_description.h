// SPDX-License-Identifier: GPL-3.0-or-later
//
// What an archive and its documents are, without their contents: the values
// that readers, writers and indexes exchange. All sizes are in bytes.
#ifndef QUIRE_SERVER_ARCHIVE_FORMAT_ARCHIVE_DESCRIPTION_H_
#define QUIRE_SERVER_ARCHIVE_FORMAT_ARCHIVE_DESCRIPTION_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "codecs/base/bytes.h"
#include "codecs/base/positions.h"
#include "codecs/block_codec.h"
#include "codecs/deflate/deflate_finder.h"
#include "codecs/deflate/deflate_recipe.h"
#include "codecs/payload/inflated_count.h"

namespace quire {

// A document as its index knows it.
struct Document {
  DocumentOrdinal ordinal;
  // Any bytes, also none; not necessarily unique.
  std::string id;
  LogicalRange range;
  // Milliseconds since 1970-01-01 UTC, if the source said.
  std::optional<int64_t> capture_time_ms;
  // "response", "request", ...: the WARC record type; empty if not from a WARC.
  std::string record_type;
  // "text/html", without parameters; empty if the source did not say.
  std::string media_type;
};

// Which of several documents of one id.
struct DocumentSelection {
  // The document has one of these record types; "" is that of documents not
  // from a WARC. Viewed during the call only.
  absl::Span<const absl::string_view> record_types;
  // The newest that is not after this, in milliseconds since 1970-01-01 UTC; if
  // all are, the oldest. A document without a capture time is older than all
  // others; of several of one time, the last in the archive is meant.
  int64_t at_time_ms = INT64_MAX;
};

// Of an archive of codec auto: its blocks that are in one codec.
struct MemberBlocks {
  // copy also for blocks whose frames hold the text itself.
  CodecId codec = CodecId::kUnspecified;
  uint64_t block_count = 0;
  // Of their text, and of their payloads.
  uint64_t size_bytes = 0;
  uint64_t stored_size_bytes = 0;

  bool operator==(const MemberBlocks&) const = default;
};

// Compressed members of one kind that a build found.
struct FoundMembers {
  struct Refused {
    uint64_t count = 0;
    uint64_t size_bytes = 0;

    bool operator==(const Refused&) const = default;
  };

  DeflateContainer container = DeflateContainer::kRaw;
  // Those that are stored as their text, unless their block gets smaller
  // without it: how many, of how many bytes, of how much text.
  uint64_t count = 0;
  uint64_t size_bytes = 0;
  uint64_t text_size_bytes = 0;
  // Those of them that their blocks got smaller with.
  InflatedMembers inflated = {};
  // Those that are stored as they are, by DeflateRefusal.
  std::array<Refused, kDeflateRefusalCount> refused = {};

  bool operator==(const FoundMembers&) const = default;
};

// What an archive is, without its contents.
struct ArchiveInfo {
  // 16 bytes as 36 characters; derived from the contents, so equal archives
  // have equal uuids.
  std::string uuid;
  uint32_t format_version = 0;
  CodecSpec codec;
  // Text of all blocks but the last of a segment, unless they vary in size.
  uint32_t block_size_bytes = 0;
  // Upper bound on the text of a block; at least block_size_bytes.
  uint32_t block_size_bytes_max = 0;
  // True if blocks of some segment have other sizes, as those do that are cut
  // around compressed members.
  bool has_varying_blocks = false;
  // Upper bound on the slices (parts of a run in one block) that any 1 MiB of
  // the text of one segment touches.
  uint32_t slices_per_mib_max = 0;
  // Program that wrote the archive; any bytes.
  std::string writer;
  // How the archive was built, and why so; any bytes, perhaps none.
  std::string choice;
  // A part of the archive that this program does not know and may ignore: "the
  // manifest has fields". Empty if it knows all. A program that writes the
  // archive again would drop it.
  std::string unknown_part;
  // Of the logical space.
  uint64_t size_bytes = 0;
  // Of all files of the archive on disk.
  uint64_t stored_size_bytes = 0;
  // Of the text in its blocks: size_bytes, less the duplicates that segments
  // with a layout leave out.
  uint64_t stored_text_size_bytes = 0;
  // Runs of all segments; one for each that stores its text in order.
  uint64_t run_count = 0;
  // True if a segment has more than one run.
  bool has_layout = false;
  uint64_t block_count = 0;
  uint64_t document_count = 0;
  uint32_t segment_count = 0;
  // Inputs, files and members that the build could not read and left out.
  uint64_t unread_input_count = 0;
  // What the first of them were and why they could not be read, for people; any
  // bytes.
  std::vector<std::string> unread_inputs;
  // Of codec auto, in order of codec; empty for others.
  std::vector<MemberBlocks> members;
  // Of codecs that inflate, in order of container; empty for others.
  std::vector<FoundMembers> found_members;

  // Blocks may have recipes: their compressed members are stored as text.
  bool has_recipes = false;
  // 0 where the codec uses none.
  uint64_t dictionary_size_bytes = 0;
  uint64_t dictionary_stored_size_bytes = 0;
  // 16 hexadecimal digits; empty where the codec uses none.
  std::string dictionary_hash;
  // 0 where there is none.
  uint64_t symbol_table_size_bytes = 0;
  // 16 hexadecimal digits; empty where there is none.
  std::string symbol_table_hash;
};

// What an open archive holds in RAM, by part, in bytes.
struct ArchiveMemory {
  uint64_t dictionary_bytes = 0;
  // The symbol table, and what encodes and decodes by it.
  uint64_t symbol_table_bytes = 0;
  // Decoding tables of the codec.
  uint64_t codec_bytes = 0;
  uint64_t block_index_bytes = 0;
  uint64_t layout_bytes = 0;
  uint64_t document_starts_bytes = 0;
  uint64_t document_ids_bytes = 0;
  uint64_t document_attributes_bytes = 0;

  uint64_t total_bytes() const {
    return dictionary_bytes + symbol_table_bytes + codec_bytes +
           block_index_bytes + layout_bytes + document_starts_bytes +
           document_ids_bytes + document_attributes_bytes;
  }
};

// A document to be added. Views are used during the call only.
struct NewDocument {
  absl::string_view id = {};
  uint64_t size_bytes = 0;
  std::optional<int64_t> capture_time_ms = std::nullopt;
  absl::string_view record_type = {};
  absl::string_view media_type = {};
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FORMAT_ARCHIVE_DESCRIPTION_H_
