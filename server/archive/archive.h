// SPDX-License-Identifier: GPL-3.0-or-later
//
// An archive, opened for reading. FORMAT.md describes the files.
//
// Opening reads and checks everything but the blocks: manifest, dictionary,
// symbol table, block indexes, document indexes; all of it stays in RAM. Blocks
// are read by server/storage, which knows the device, from the extents handed
// out here, and come back here to be checked and decoded.
#ifndef QUIRE_SERVER_ARCHIVE_ARCHIVE_H_
#define QUIRE_SERVER_ARCHIVE_ARCHIVE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/base/positions.h"
#include "codecs/payload/payload_codec.h"
#include "server/archive/files/direct_file.h"
#include "server/archive/files/file_io.h"
#include "server/archive/format/archive_description.h"
#include "server/archive/format/block_frame.h"

namespace quire {

class SegmentLayout;
class SegmentReader;
struct ArchiveDirectory;

// One block, and the part of it that a range covers.
struct BlockSlice {
  BlockAddress block;
  // Bytes of the decoded block.
  uint32_t offset_in_block = 0;
  uint32_t size_bytes = 0;
};

// An archive as its manifest has it and its files' names, before it is opened.
struct ArchiveOutline {
  ArchiveInfo info;
  // As Archive::files().
  std::vector<FileIdentity> files;
  // Archive::memory_bytes_max() of the opened archive.
  uint64_t memory_bytes = 0;
  // About what Open() takes on top of that while it runs.
  uint64_t opening_bytes = 0;
};

struct ArchiveOpenOptions {
  // Affects behaviour: whether an archive is opened of which nothing but ids or
  // attributes of documents is damaged; see Archive::index_damages().
  bool without_damaged_indexes = false;
  // Affects performance: whether extents can be read past the page cache, too.
  DirectIo direct_io = DirectIo::kOff;
  // Looked at now and then while it is opened; may be null.
  const std::atomic<bool>* cancel = nullptr;
};

// Immutable and thread-safe. Shared: a reader of its extents keeps a reference,
// as its files stay open only while it lives.
class Archive {
 public:
  // Opens the archive in the directory `path`. All files are taken from the one
  // directory that `path` names; where it is replaced meanwhile, the new one is
  // opened.
  // Errors: NotFound            no such directory, or no MANIFEST in it.
  //         Aborted             replaced over and over; try again later.
  //         DataLoss            a file is damaged or truncated; the message
  //                             names the file, what was found and what was
  //                             expected.
  //         FailedPrecondition  written in a format or by a codec that this
  //                             program does not know; or the file system
  //                             cannot do the direct I/O asked for.
  //         Cancelled           `options.cancel` is true.
  static absl::StatusOr<std::shared_ptr<const Archive>> Open(
      const std::string& path, const ArchiveOpenOptions& options = {});

  // Reads the manifest and finds the files, but reads none of them: costs
  // almost nothing, however large the archive is. Errors: as Open().
  static absl::StatusOr<ArchiveOutline> ReadOutline(const std::string& path);

  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;
  ~Archive();

  const std::string& path() const { return path_; }

  // The file of a segment. REQUIRES: segment_index < info().segment_count.
  const std::string& SegmentPath(uint32_t segment_index) const;

  const ArchiveInfo& info() const { return info_; }

  const ArchiveMemory& memory() const { return memory_; }

  // Upper bound on the sum of memory(), in bytes. It follows from the manifest
  // alone, so that memory that is planned before an archive is opened and
  // memory that is counted afterwards agree.
  uint64_t memory_bytes_max() const { return memory_bytes_max_; }

  // Which files on disk it consists of: differs from those of another opening
  // whenever a file was replaced or written to in between.
  const std::vector<FileIdentity>& files() const { return files_; }

  // Uncompressed; empty where the codec uses none.
  ByteView dictionary() const { return AsBytes(context_->dictionary); }

  // As fsst/symbol_table.h serialises it, and checked; empty where there is
  // none.
  ByteView symbol_table() const { return AsBytes(context_->symbol_table); }

  const PayloadCodec& codec() const { return *codec_; }

  // Why extents have no direct_fd, with the file's path, where that was left
  // open (DirectIo::kAuto); empty otherwise. For the log.
  const std::string& direct_io_note() const { return direct_io_note_; }

  // The damaged indexes that it was opened without, with the files' paths.
  // Documents of these segments are found by ordinal and range, but not by id,
  // or have no times or types, and listings by id leave them out.
  const std::vector<absl::Status>& index_damages() const {
    return index_damages_;
  }

  // --- Blocks ---

  // Whether a range may lie in several places, whose slices do not go on where
  // the ones before end.
  bool has_layout() const { return info_.has_layout; }

  // The blocks that `range` covers, in logical order; none for an empty range.
  // With a layout the same block may come several times.
  // Errors: OutOfRange  `range` does not lie within [0, info().size_bytes].
  absl::StatusOr<std::vector<BlockSlice>> Plan(LogicalRange range) const;

  // Decoded size of a block.
  // REQUIRES for this and the next: the block exists.
  uint32_t BlockSizeBytes(BlockAddress block) const;
  // Where the block lies with all that belongs to it: header, payload and
  // checksum (FORMAT.md: "block frame").
  Extent BlockExtent(BlockAddress block) const;
  // Number of blocks of one segment; where it begins in the logical space; and
  // where its text is in its blocks.
  // REQUIRES for these: segment_index < segment_count.
  uint64_t SegmentBlockCount(uint32_t segment_index) const;
  uint64_t SegmentStart(uint32_t segment_index) const;
  const SegmentLayout& SegmentLayoutOf(uint32_t segment_index) const;

  // Checks the frame read from BlockExtent(block) and decodes parts of its
  // text, which need not be neighbours. Damage elsewhere is found by the
  // checksum, not by the codec. REQUIRES: the parts lie in the block, which has
  // BlockSizeBytes(block). Errors: DataLoss  checksum, header or codec; the
  // message names segment and
  //                   block.
  absl::Status DecodeBlock(BlockAddress block, ByteView frame,
                           std::span<const BlockPart> parts,
                           PayloadCodec::Scratch& scratch) const;

  // Checks the frame read from BlockExtent(block) without decoding it; what a
  // codec makes of its payload stays unknown.
  // Errors: DataLoss  checksum or header; the message names segment and block.
  absl::Status CheckBlock(BlockAddress block, ByteView frame) const;

  // Reads a block as it is stored, over what was in `frame`, with a blocking
  // pread, and checks it. The result is a view into `frame`.
  // Errors: DataLoss  checksum or header, or the file cannot be read.
  absl::StatusOr<Payload> ReadPayload(BlockAddress block,
                                      std::vector<uint8_t>& frame) const;

  // Reads and decodes one block with a blocking pread: for the offline
  // subcommands. Errors: as DecodeBlock(); DataLoss also where the file cannot
  // be read.
  absl::Status ReadBlock(BlockAddress block, MutableByteView raw,
                         PayloadCodec::Scratch& scratch) const;

  // --- Documents ---

  // Errors: OutOfRange  no such document.
  absl::StatusOr<Document> GetDocument(DocumentOrdinal ordinal) const;

  // The id and the attributes of one document have at most so many bytes
  // together: the longest of each, even where no document has all of them.
  uint64_t DescriptionSizeBytesMax() const {
    return description_size_bytes_max_;
  }

  // GetDocument(ordinal).range, without the rest.
  absl::StatusOr<LogicalRange> GetDocumentRange(DocumentOrdinal ordinal) const;
  // All documents with exactly this id, in order of ordinal.
  // Errors: NotFound  there is none.
  absl::StatusOr<std::vector<DocumentOrdinal>> FindDocuments(
      absl::string_view id) const;

  // Of the documents with exactly one id, how many there are, and one of them.
  struct FoundDocument {
    uint64_t count = 0;
    // Unset if there are not as many.
    std::optional<DocumentOrdinal> ordinal = std::nullopt;
  };

  // Number `occurrence` of FindDocuments(id), from 0, or the last one; in the
  // time of a few look-ups, of however many there are.
  FoundDocument FindDocument(absl::string_view id,
                             std::optional<uint64_t> occurrence) const;
  // The one that `selection` means, in the time of a few look-ups as well;
  // unset if none has one of its types.
  FoundDocument FindCapture(absl::string_view id,
                            const DocumentSelection& selection) const;
  // At most `count_max` of the record types that documents of the id have, each
  // once.
  std::vector<std::string> RecordTypesOf(absl::string_view id,
                                         size_t count_max) const;
  // The document that holds a byte of the logical space. Empty documents hold
  // none. Errors: OutOfRange  past the end.
  absl::StatusOr<DocumentOrdinal> DocumentAt(LogicalOffset offset) const;

  // Where a listing stands. Ordered by (id, ordinal), bytewise.
  struct IdCursor {
    std::string id;
    uint64_t ordinal = 0;
  };

  // Calls `visit` for the documents whose id starts with `prefix`, in order of
  // (id, ordinal), those after `after` if given, until it returns false.
  void VisitDocuments(absl::string_view prefix,
                      const std::optional<IdCursor>& after,
                      const std::function<bool(const Document&)>& visit) const;

 private:
  struct Segment;

  explicit Archive(std::string path);
  absl::Status Load(const ArchiveDirectory& directory,
                    const ArchiveOpenOptions& options);

  const SegmentReader& SegmentOf(BlockAddress block) const;
  // Appends the slices of a part of one segment's text to `slices`.
  void PlanInSegment(size_t segment_index, uint64_t offset, uint64_t size_bytes,
                     std::vector<BlockSlice>& slices) const;
  // The segment of a document. REQUIRES: ordinal < info_.document_count.
  const Segment& SegmentOfDocument(uint64_t ordinal) const;
  // The index of the segment of a byte. REQUIRES: offset < info_.size_bytes.
  size_t SegmentIndexAt(uint64_t offset) const;
  absl::Status CheckOrdinal(DocumentOrdinal ordinal) const;
  // The rank in `segment` at which a listing begins.
  static uint64_t FirstRank(const Segment& segment, absl::string_view prefix,
                            const std::optional<IdCursor>& after);

  const std::string path_;
  ArchiveInfo info_;
  ArchiveMemory memory_;
  uint64_t memory_bytes_max_ = 0;
  std::shared_ptr<const CodecContext> context_;
  std::unique_ptr<const PayloadCodec> codec_;
  std::vector<Segment> segments_;
  uint64_t description_size_bytes_max_ = 0;
  std::vector<FileIdentity> files_;
  std::string direct_io_note_;
  std::vector<absl::Status> index_damages_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_ARCHIVE_H_
