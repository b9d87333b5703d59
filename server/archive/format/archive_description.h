// SPDX-License-Identifier: GPL-3.0-or-later
//
// Descriptions of an archive and its documents, without their contents: the
// values that readers, writers and indexes exchange. All sizes are in bytes.
#ifndef QUIRE_SERVER_ARCHIVE_FORMAT_ARCHIVE_DESCRIPTION_H_
#define QUIRE_SERVER_ARCHIVE_FORMAT_ARCHIVE_DESCRIPTION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "codecs/base/positions.h"
#include "codecs/block_codec.h"
#include "codecs/deflate/deflate_finder.h"
#include "codecs/deflate/deflate_recipe.h"
#include "codecs/filter/field_value.h"
#include "codecs/payload/inflated_count.h"

namespace quire {

class DepositDraft;

// A document as the index describes it.
struct Document {
  DocumentOrdinal ordinal;
  // Any bytes, may be empty; not necessarily unique.
  std::string id;
  LogicalRange range;
  // Milliseconds since 1970-01-01 UTC; unset if the source did not state it.
  std::optional<int64_t> capture_time_ms;
  // "response", "request", ...: the WARC record type; empty if not from a WARC.
  std::string record_type;
  // "text/html", without parameters; empty if the source did not state it.
  std::string media_type;
};

// Called with ordinals of what is searched: an archive, or the index of a
// segment.
using OrdinalPredicate = std::function<bool(uint64_t ordinal)>;

// Selects one of several documents with the same id.
struct DocumentSelection {
  // Accept only these record types; "" is the type of documents that are not
  // from a WARC. Viewed during the call only.
  absl::Span<const absl::string_view> record_types;
  // Take the newest document at or before this time, in milliseconds since
  // 1970-01-01 UTC, or the oldest if all are later. A document without a
  // capture time is older than all others; of several with the same time, the
  // last in the archive is taken.
  int64_t at_time_ms = INT64_MAX;
  // Passes over documents for which it is true; null: none. Viewed during the
  // call only. A look-up then takes time for each document that it passes over.
  const OrdinalPredicate* is_left_out = nullptr;
};

// The blocks that codec auto stored in one codec.
struct MemberBlocks {
  // Copy also for blocks whose frames hold the text itself.
  CodecId codec = CodecId::kUnspecified;
  uint64_t block_count = 0;
  // Sizes of their text and of their payloads.
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
  // Members that are stored as their text, unless their block gets smaller
  // without it: their number, their size, and the size of their text.
  uint64_t count = 0;
  uint64_t size_bytes = 0;
  uint64_t text_size_bytes = 0;
  // Those of them in blocks that got smaller by it.
  InflatedMembers inflated = {};
  // Members that are stored unchanged, by DeflateRefusal.
  std::array<Refused, kDeflateRefusalCount> refused = {};

  // Adds the counts of another build. REQUIRES: the same container.
  FoundMembers& operator+=(const FoundMembers& other) {
    count += other.count;
    size_bytes += other.size_bytes;
    text_size_bytes += other.text_size_bytes;
    inflated.count += other.inflated.count;
    inflated.size_bytes += other.inflated.size_bytes;
    inflated.stored_size_bytes += other.inflated.stored_size_bytes;
    for (size_t i = 0; i < refused.size(); ++i) {
      refused[i].count += other.refused[i].count;
      refused[i].size_bytes += other.refused[i].size_bytes;
    }
    return *this;
  }

  bool operator==(const FoundMembers&) const = default;
};

// A state of an archive: its first documents.
struct ArchiveState {
  // 16 bytes as 36 characters.
  std::string uuid;
  // Size of their text.
  uint64_t size_bytes = 0;
  uint64_t document_count = 0;

  bool operator==(const ArchiveState&) const = default;
};

// Description of an archive, without its contents.
struct ArchiveInfo {
  // 16 bytes as 36 characters. Derived from the contents: equal archives have
  // equal uuids.
  std::string uuid;
  // Earlier states, oldest first; at most 4096.
  std::vector<ArchiveState> history;
  // States before documents were removed, likewise: positions of documents and
  // text are those of the present state, and the removed documents are there.
  std::vector<ArchiveState> redacted_states;
  uint32_t format_version = 0;
  CodecSpec codec;
  // Text of each block except the last of a segment, unless blocks vary in
  // size.
  uint32_t block_size_bytes = 0;
  // Upper bound on the text of a block; at least block_size_bytes.
  uint32_t block_size_bytes_max = 0;
  // True if blocks of some segment have other sizes, for example because they
  // were cut around compressed members.
  bool has_varying_blocks = false;
  // Upper bound on the slices (parts of a run in one block) that any 1 MiB of
  // the text of one segment touches.
  uint32_t slices_per_mib_max = 0;
  // Program that wrote the archive; any bytes.
  std::string writer;
  // Choices of the build and their reasons; any bytes, may be empty.
  std::string choice;
  // A part of the archive that this program does not know and may ignore: "the
  // manifest has fields". Empty if all parts are known. Rewriting the archive
  // would drop the part.
  std::string unknown_part;
  // Size of the logical space.
  uint64_t size_bytes = 0;
  // Size of all files of the archive on disk.
  uint64_t stored_size_bytes = 0;
  // Size of the text in the blocks: size_bytes, less the duplicates that
  // segments with a layout leave out.
  uint64_t stored_text_size_bytes = 0;
  // Runs of all segments; one for each segment that stores its text in order.
  uint64_t run_count = 0;
  // True if a segment has more than one run.
  bool has_layout = false;
  uint64_t block_count = 0;
  uint64_t document_count = 0;
  uint32_t segment_count = 0;
  // Inputs, files and members that the build could not read and left out.
  uint64_t unread_input_count = 0;
  // Messages for people about the first unread inputs, with the reasons; any
  // bytes.
  std::vector<std::string> unread_inputs;
  // For codec auto, in order of codec; empty for others.
  std::vector<MemberBlocks> members;
  // For codecs that inflate, in order of container; empty for others.
  std::vector<FoundMembers> found_members;

  // True if blocks may have recipes: their compressed members are stored as
  // text.
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

// Memory that an open archive holds, by part, in bytes.
struct ArchiveMemory {
  uint64_t dictionary_bytes = 0;
  // The symbol table, with its encoder and decoder.
  uint64_t symbol_table_bytes = 0;
  // Decoding tables of the codec.
  uint64_t codec_bytes = 0;
  uint64_t block_index_bytes = 0;
  uint64_t layout_bytes = 0;
  uint64_t document_starts_bytes = 0;
  uint64_t document_ids_bytes = 0;
  // Bloom filters of archives of many segments.
  uint64_t id_filters_bytes = 0;
  uint64_t document_attributes_bytes = 0;

  uint64_t total_bytes() const {
    return dictionary_bytes + symbol_table_bytes + codec_bytes +
           block_index_bytes + layout_bytes + document_starts_bytes +
           document_ids_bytes + id_filters_bytes + document_attributes_bytes;
  }
};

// What an index of captures says of a document that is one, besides its time.
// Views are used during the call only.
struct NewCapture {
  // SURT (codecs/surt/surt_key.h): 1 to kCaptureKeySizeBytesMax bytes.
  absl::string_view key = {};
  // As the record states it; at most kDocumentIdSizeBytesMax bytes.
  absl::string_view url = {};
  // Of HTTP, at most 999; 0 without one.
  uint32_t status = 0;
  // As the record states it, such as "sha1:..."; empty without one.
  absl::string_view digest = {};
};

// A document to add. Views are used during the call only.
struct NewDocument {
  absl::string_view id = {};
  uint64_t size_bytes = 0;
  std::optional<int64_t> capture_time_ms = std::nullopt;
  absl::string_view record_type = {};
  absl::string_view media_type = {};
  // Values of the first fields of its segment; it has none of the others.
  absl::Span<const FieldValue> fields = {};
  // Set for a capture, which has a time.
  std::optional<NewCapture> capture = std::nullopt;
  // The deposited file of which it is the next part (deposit_draft.h); null if
  // it is part of none.
  std::shared_ptr<DepositDraft> deposit = nullptr;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FORMAT_ARCHIVE_DESCRIPTION_H_
