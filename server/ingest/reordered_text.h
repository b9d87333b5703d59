// SPDX-License-Identifier: GPL-3.0-or-later
//
// The text that the blocks of an archive hold where that is not the text of its
// documents in order: duplicates are stored once, and similar text together.
// After Lin et al., "Migratory Compression: Coarse-grained Data Reordering to
// Improve Compressibility" (FAST 2014), section 3, which removes duplicates
// before it moves chunks.
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
#include "server/ingest/build_memory.h"
#include "server/ingest/sources/byte_stream.h"
#include "server/ingest/sources/spool.h"
#include "server/ingest/text_migration.h"

namespace quire {

struct ReorderOptions {
  // Where a file without a name holds the stored text until it is encoded.
  std::string spool_directory;
  // Of the largest segment; chunks grow with it, from 2 KiB, so that there are
  // not too many.
  uint64_t segment_size_bytes = 0;
  // Upper bound on the memory of the tables: 64 bytes for each chunk that is
  // stored, and 16 for each run, twice if text moves. There are at most 2^23
  // chunks, of which the tables fit the default.
  uint64_t memory_bytes_max = kBuildMemoryBytesDefault;
  // Of the drive that has the directory, how much it reads in the time of a
  // seek; 0 if seeks cost nothing. Where they do, text that moves takes what
  // the tables leave of the memory. The result is the same.
  uint64_t seek_cost_bytes = 0;
  // A duplicate is left out if that leaves out so many bytes in a row. At least
  // kRunPairSizeBytesMin. Short ones save little, and make a range touch more
  // blocks.
  uint64_t duplicate_size_bytes_min = kRunPairSizeBytesMin;
  // What moves next to similar text, if anything: text_migration.h. Takes the
  // file twice.
  enum class Moves {
    kNothing,
    kChunks,
    // What is new in a document, in parts if it is large, and several documents
    // together if they are very short. For archives with a dictionary: what
    // chunks save beyond that is in the dictionary mostly.
    kDocuments,
  };
  Moves moves = Moves::kNothing;
  // Of what moves only what is worth it; without, all that is similar.
  std::optional<ReorderPrice> price = std::nullopt;
};

// One archive's text, ready to be encoded.
struct ReorderedText {
  struct Segment {
    LayoutSection layout;
    DocumentIndexBuilder documents;
  };

  // The stored text of all segments, one after the other.
  std::shared_ptr<const InputFile> file;
  uint64_t size_bytes = 0;
  // Checksum64() of it.
  uint64_t checksum = 0;
  std::vector<Segment> segments;
};

// Fills `out` with text of a file that was written here, such as
// ReorderedText::file. Errors: those of `file`; StoredTextChanged()  there is
// less than was written.
absl::Status ReadStoredText(const InputFile& file, uint64_t offset,
                            MutableByteView out);

// DataLoss.
absl::Status StoredTextChanged(const InputFile& file);

// Takes the documents of an archive in order. What it makes of them depends on
// them and on the options alone.
// Thread-compatible.
class TextReorderer {
 public:
  // Errors: Unavailable  the directory cannot hold the text.
  static absl::StatusOr<std::unique_ptr<TextReorderer>> Create(
      const ReorderOptions& options);

  // The next bytes of the current document.
  // Errors: Unavailable        no space is left in the directory.
  //         ResourceExhausted  the tables would take more than they may.
  absl::Status Add(ByteView piece);

  // Ends the document that all text since the last one is of; its size is known
  // and need not be set. Errors: as Add() and DocumentIndexBuilder::Add().
  absl::Status EndDocument(NewDocument document);

  // The next document begins a segment: duplicates are found within one.
  // Errors: as Add().
  absl::Status EndSegment();

  // Ends the last segment, if it has documents. The builder is of no more use.
  // Errors: as Add().
  absl::StatusOr<ReorderedText> Finish();

  // What the tables took at most.
  uint64_t held_bytes_max() const { return memory_.held_bytes_max(); }

 private:
  TextReorderer(Spool spool, const ReorderOptions& options);

  // Stores `chunk`, which is the next of the text, or finds where it is stored.
  absl::Status Place(ByteView chunk);
  // The place of `chunk` in the stored text of this segment, if it is there.
  absl::StatusOr<bool> FindDuplicate(ByteView chunk, uint64_t& offset);
  absl::StatusOr<bool> IsStoredAt(uint64_t offset, ByteView chunk);
  // Decides on the duplicates held.
  absl::Status EndDuplicates();
  absl::Status Store(ByteView text);
  // Whether the text stored next is moved apart from what was stored last.
  bool BeginsUnit() const;
  // Notes what the tables take, and what they will at least.
  absl::Status HoldTables();
  absl::Status MigrateSegment();
  // Appends text to `spool`, in large pieces.
  absl::Status Write(ByteView text, Spool& spool);
  absl::Status Flush(Spool& spool);

  const ReorderOptions options_;
  const ContentChunker chunker_;
  // Text that is moved on its own has that size at least.
  const uint64_t unit_size_bytes_min_;
  Spool spool_;
  // If text is moved: where it goes from `spool_`, which then has that of the
  // current segment only.
  std::optional<Spool> moved_spool_;
  ReorderedText text_;
  Checksummer64 checksum_;
  BuildMemory memory_;
  // What the runs of the segments before take.
  uint64_t earlier_run_bytes_ = 0;

  // --- Of the current segment ---
  ReorderedText::Segment segment_;
  RunList runs_;
  // Where its stored text begins in the file.
  uint64_t segment_offset_ = 0;
  // Its size.
  uint64_t stored_size_bytes_ = 0;
  // That of all its text so far.
  uint64_t segment_text_size_bytes_ = 0;
  // From the hash of a chunk to its number in chunk_offsets_, which has the
  // places in the stored text.
  FirstNumberTable chunk_numbers_;
  OffsetList chunk_offsets_;
  // If text is moved: where its units begin, and the sum of all.
  OffsetList units_;
  Checksummer64 segment_checksum_;
  // Where the last one began, and whether its last document has ended.
  uint64_t unit_offset_ = 0;
  bool document_ended_ = false;
  TextChecksummer text_checksums_;

  // --- Of the text that comes ---
  // Of the current document, not yet divided from `pending_used_` on.
  std::vector<uint8_t> pending_;
  size_t pending_used_ = 0;
  uint64_t document_size_bytes_ = 0;
  // Duplicates in a row, which are stored in a row.
  StoredRun duplicates_;
  // Their text, while it may be too short to be left out.
  std::vector<uint8_t> held_;
  // The end of the stored text, which the file does not have yet.
  std::vector<uint8_t> unwritten_;
  std::vector<uint8_t> compared_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_REORDERED_TEXT_H_
