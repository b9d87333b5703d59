// SPDX-License-Identifier: GPL-3.0-or-later
//
// The text in the blocks of an archive that does not store its documents in
// order: duplicates are stored once, and similar text together. After Lin et
// al., "Migratory Compression: Coarse-grained Data Reordering to Improve
// Compressibility" (FAST 2014), section 3, which removes duplicates before it
// moves chunks.
#ifndef QUIRE_SERVER_INGEST_REORDERED_TEXT_H_
#define QUIRE_SERVER_INGEST_REORDERED_TEXT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/reorder/content_chunker.h"
#include "codecs/reorder/first_number_table.h"
#include "codecs/reorder/offset_list.h"
#include "codecs/reorder/reorder_price.h"
#include "codecs/reorder/stored_run.h"
#include "server/archive/format/layout_section.h"
#include "server/archive/index/document_index_builder.h"
#include "server/ingest/sources/spool.h"
#include "server/ingest/sources/streams/byte_stream.h"
#include "server/ingest/text/build_memory.h"
#include "server/ingest/text/text_migration.h"

namespace quire {

struct ReorderOptions {
  // Directory of an unnamed file that holds the stored text until it is
  // encoded.
  std::string spool_directory;
  // Size of the largest segment. Chunks grow with it, from 2 KiB, which limits
  // their number.
  uint64_t segment_size_bytes = 0;
  // Upper bound on the memory of the tables: 64 bytes for each stored chunk,
  // and 16 for each run, twice if text moves. There are at most 2^23 chunks,
  // whose tables fit the default.
  uint64_t memory_bytes_max = kBuildMemoryBytesDefault;
  // Bytes that the directory's drive reads in the time of a seek; 0 if seeks
  // cost nothing. If they cost time, text that moves uses the memory that the
  // tables leave. The result is the same.
  uint64_t seek_cost_bytes = 0;
  // Minimum number of contiguous duplicate bytes to omit. At least
  // kRunPairSizeBytesMin. Short duplicates save little, and make a range touch
  // more blocks.
  uint64_t duplicate_size_bytes_min = kRunPairSizeBytesMin;
  // Unit that moves next to similar text, if any: text_migration.h. Needs a
  // second file.
  enum class Moves {
    kNothing,
    kChunks,
  };
  Moves moves = Moves::kNothing;
  // Moves only units that are worth it; without a price, all similar ones.
  std::optional<ReorderPrice> price = std::nullopt;
};

// One archive's text, ready to be encoded.
struct ReorderedText {
  struct Segment {
    LayoutSection layout;
    DocumentIndexBuilder documents;
  };

  // Stored text of all segments, concatenated.
  std::shared_ptr<const InputFile> file;
  uint64_t size_bytes = 0;
  // Checksum64() of the file.
  uint64_t checksum = 0;
  std::vector<Segment> segments;
};

// Fills `out` with text of a file that was written here, such as
// ReorderedText::file. Errors: those of `file`; StoredTextChanged()  the file
// is shorter than written.
absl::Status ReadStoredText(const InputFile& file, uint64_t offset,
                            MutableByteView out);

// Returns DataLoss.
absl::Status StoredTextChanged(const InputFile& file);

// Takes the documents of an archive in order. The result depends only on them
// and on the options.
// Thread-compatible.
class TextReorderer {
 public:
  // Errors: Unavailable  the directory cannot hold the text.
  static absl::StatusOr<std::unique_ptr<TextReorderer>> Create(
      const ReorderOptions& options);

  // Sets the fields of all documents; call first.
  // Errors: those of FieldsBuilder::AddColumn().
  absl::Status SetFields(std::vector<FieldColumn> columns);

  // Adds the next bytes of the current document.
  // Errors: Unavailable        no space left in the directory.
  //         ResourceExhausted  the tables would exceed their limit.
  absl::Status Add(ByteView piece);

  // Ends the document of all text since the last one; its size is known and
  // need not be set. Errors: as Add() and DocumentIndexBuilder::Add().
  absl::Status EndDocument(NewDocument document);

  // Begins a new segment with the next document: duplicates are found within
  // one.
  // Errors: as Add().
  absl::Status EndSegment();

  // Ends the last segment, if it has documents. The reorderer is unusable
  // afterwards.
  // Errors: as Add().
  absl::StatusOr<ReorderedText> Finish();

  // Maximum memory of the tables.
  uint64_t held_bytes_max() const { return memory_.held_bytes_max(); }

 private:
  TextReorderer(Spool spool, const ReorderOptions& options);

  // Stores `chunk`, the next one of the text, or finds its duplicate.
  absl::Status Place(ByteView chunk);
  // Finds the offset of `chunk` in the stored text of this segment.
  absl::StatusOr<bool> FindDuplicate(ByteView chunk, uint64_t& offset);
  absl::StatusOr<bool> IsStoredAt(uint64_t offset, ByteView chunk);
  // Decides on the duplicates held.
  absl::Status EndDuplicates();
  absl::Status Store(ByteView text);
  // True if the next stored text moves separately from the previous one.
  bool BeginsUnit() const;
  // Records the memory of the tables, and its lower bound for the rest.
  absl::Status HoldTables();
  absl::Status MigrateSegment();
  // Appends text to `spool`, in large pieces.
  absl::Status Write(ByteView text, Spool& spool);
  absl::Status Flush(Spool& spool);

  const ReorderOptions options_;
  const ContentChunker chunker_;
  // Minimum size of text that moves separately.
  const uint64_t unit_size_bytes_min_;
  Spool spool_;
  // If text moves: its destination; `spool_` then has only the text of the
  // current segment.
  std::optional<Spool> moved_spool_;
  ReorderedText text_;
  Checksummer64 checksum_;
  BuildMemory memory_;
  // Memory of the earlier segments' runs.
  uint64_t earlier_run_bytes_ = 0;

  // --- Current segment ---
  ReorderedText::Segment segment_;
  // Fields of the documents of all segments.
  std::vector<FieldColumn> fields_;
  RunList runs_;
  // Offset of its stored text in the file.
  uint64_t segment_offset_ = 0;
  // Size of its stored text.
  uint64_t stored_size_bytes_ = 0;
  // Size of all its text so far.
  uint64_t segment_text_size_bytes_ = 0;
  // From the hash of a chunk to its number in chunk_offsets_, which has the
  // offsets in the stored text.
  FirstNumberTable chunk_numbers_;
  OffsetList chunk_offsets_;
  // If text moves: the offsets of its units, and the sum of all.
  OffsetList units_;
  Checksummer64 segment_checksum_;
  // Start of the last unit.
  uint64_t unit_offset_ = 0;
  TextChecksummer text_checksums_;

  // --- Incoming text ---
  // Text of the current document; not yet divided from `pending_used_` on.
  std::vector<uint8_t> pending_;
  size_t pending_used_ = 0;
  uint64_t document_size_bytes_ = 0;
  // Contiguous duplicates that are stored contiguously.
  StoredRun duplicates_;
  // Their text, while it may be too short to be omitted.
  std::vector<uint8_t> held_;
  // End of the stored text that is not in the file yet.
  std::vector<uint8_t> unwritten_;
  std::vector<uint8_t> compared_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_REORDERED_TEXT_H_
