// SPDX-License-Identifier: GPL-3.0-or-later
//
// An archive, opened for reading. FORMAT.md describes the files.
//
// Opening reads and checks everything except the blocks: manifest, dictionary,
// symbol table, block indexes, document indexes; all of it stays in RAM.
// server/storage, which knows the device, reads blocks from the extents of this
// class, which then checks and decodes them.
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

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
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

class Archive;
class BlockSpans;
class DepositedFiles;
class OpeningHelpers;
class SegmentLayout;
class SegmentReader;
struct ArchiveDirectory;
struct ArchiveFiles;
struct FieldColumn;
struct Manifest;
struct ManifestSegment;
struct SegmentFile;
struct TextChecksum;

// One block, and the part of it that a range covers.
struct BlockSlice {
  BlockAddress block;
  // Offset in the decoded block, in bytes.
  uint32_t offset_in_block = 0;
  uint32_t size_bytes = 0;
};

// Description of an archive from its manifest and its files' names, before it
// is opened.
struct ArchiveOutline {
  ArchiveInfo info;
  // See Archive::files().
  std::vector<FileIdentity> files;
  // Archive::memory_bytes_max() of the opened archive, and the part of it that
  // an archive opened earlier does not hold already.
  uint64_t memory_bytes = 0;
  uint64_t new_memory_bytes = 0;
  // Estimate of the further memory that Open() takes while it runs.
  uint64_t opening_bytes = 0;
};

struct ArchiveOpenOptions {
  // Affects behaviour: open archives in which only ids or attributes of
  // documents are damaged; see Archive::index_damages().
  bool without_damaged_indexes = false;
  // Affects performance: let extents be read past the page cache, too.
  DirectIo direct_io = DirectIo::kOff;
  // Affects performance: an archive opened earlier with the same options. Equal
  // segments, of the same number, contents and file, and an equal dictionary
  // are taken from it instead of being read. May be null.
  const Archive* shared = nullptr;
  // Affects behaviour: segments are sparse copies, which change while they are
  // open as holes are filled; their times are no part of their identities.
  bool has_sparse_segments = false;
  // Checked periodically during the opening; may be null.
  const std::atomic<bool>* cancel = nullptr;
  // Affects performance: lets other threads open some of the segments. Null:
  // the calling thread opens all.
  OpeningHelpers* helpers = nullptr;
};

// An archive in its present or an earlier state: its first documents. Views the
// archive, which must outlive it.
struct ArchiveView {
  ArchiveView() = default;

  // The present state.
  // NOLINTNEXTLINE(google-explicit-constructor): a state is an archive.
  ArchiveView(const Archive& whole);

  ArchiveView(const Archive& whole, const ArchiveState& state,
              uint64_t removed_since = 0)
      : archive(&whole),
        uuid(state.uuid),
        size_bytes(state.size_bytes),
        document_count(state.document_count),
        removals_hash(removed_since) {}

  const Archive* archive = nullptr;
  absl::string_view uuid;
  // Size of the logical space.
  uint64_t size_bytes = 0;
  uint64_t document_count = 0;
  // Not 0 in a redacted state: documents were removed since. Of one uuid, equal
  // values mean that these documents are the same.
  uint64_t removals_hash = 0;
};

// Immutable and thread-safe. Shared: a reader of its extents keeps a reference,
// since its files stay open only during its life.
class Archive {
 public:
  // Opens the archive in the directory `path`. All files are taken from one
  // directory; if `path` is replaced meanwhile, the new archive is opened.
  // Errors: NotFound            no such directory, or no MANIFEST in it.
  //         Aborted             replaced repeatedly; retry later.
  //         DataLoss            a file is damaged or truncated; the message
  //                             names the file, what was found and what was
  //                             expected.
  //         FailedPrecondition  written in a format or by a codec that this
  //                             program does not know; or the file system
  //                             does not support the requested direct I/O.
  //         Cancelled           `options.cancel` is true.
  static absl::StatusOr<std::shared_ptr<const Archive>> Open(
      const std::string& path, const ArchiveOpenOptions& options = {});

  // Opens the archive that has `manifest`, which was read before.
  // Errors: as Open(); FailedPrecondition also if it was replaced since.
  static absl::StatusOr<std::shared_ptr<const Archive>> OpenAs(
      const std::string& path, const Manifest& manifest,
      const ArchiveOpenOptions& options = {});

  // Reads the manifest and looks up the files without reading them; fast for
  // archives of any size. `shared` and `has_sparse_segments` are as in
  // ArchiveOpenOptions. Errors: as Open().
  static absl::StatusOr<ArchiveOutline> ReadOutline(
      const std::string& path, const Archive* shared = nullptr,
      bool has_sparse_segments = false);

  // Reads only the attributes of MANIFEST: returns false if the file at the
  // path of `archive` is the one that was opened, and may be true otherwise.
  static bool MayHaveChanged(const Archive& archive);

  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;
  ~Archive();

  const std::string& path() const { return path_; }

  // Path of a segment's file. REQUIRES: segment_index < info().segment_count.
  const std::string& SegmentPath(uint32_t segment_index) const;

  const ArchiveInfo& info() const { return info_; }

  // Returns the present or an earlier state, redacted ones included; unset if
  // `uuid` names none. Positions of documents and text in a state mean the same
  // in later ones.
  std::optional<ArchiveView> FindState(absl::string_view uuid) const;

  const ArchiveMemory& memory() const { return memory_; }

  // Upper bound on the sum of memory(), in bytes. Depends on the manifest
  // alone, so that memory planned before the opening equals memory counted
  // after it.
  uint64_t memory_bytes_max() const { return memory_bytes_max_; }

  // Calls `visit` with each object that counts in memory_bytes_max(), and its
  // share. Archives that share parts visit the same objects.
  void VisitMemoryParts(
      absl::FunctionRef<void(const void* object, uint64_t bytes_max)> visit)
      const;

  // Number of a segment in the names of its files. Unlike the index, it stays
  // the same when the archive grows, and never names another segment.
  // REQUIRES: segment_index < info().segment_count.
  uint32_t SegmentNumber(uint32_t segment_index) const;

  // Number of a segment's opening, unique within this process: that of another
  // archive if the segment was taken from it.
  // REQUIRES: segment_index < info().segment_count.
  uint64_t OpenedSegmentId(uint32_t segment_index) const;

  // Identities of its files. They differ from those of another opening if a
  // file was replaced or written in between.
  const std::vector<FileIdentity>& files() const { return files_; }

  // Uncompressed; empty where the codec uses none.
  ByteView dictionary() const { return AsBytes(context().dictionary); }

  // Serialised as by fsst/symbol_table.h, and checked; empty if the archive has
  // none.
  ByteView symbol_table() const { return AsBytes(context().symbol_table); }

  const PayloadCodec& codec() const;

  // For the log: the reason why extents have no direct_fd, with the file's
  // path, if the option was DirectIo::kAuto; empty otherwise.
  const std::string& direct_io_note() const { return direct_io_note_; }

  // The damaged indexes that it was opened without, with the files' paths.
  // Documents of these segments are found by ordinal and range, but not by id,
  // or have no times or types. Listings by id leave them out. Those that may
  // have been removed count as removed.
  const std::vector<absl::Status>& index_damages() const {
    return index_damages_;
  }

  // Reads all but blocks and data of containers again, in small pieces, and
  // adds what is not as it was when it was opened to `damages`. Files that were
  // replaced meanwhile are left out. Blocks on I/O.
  // Errors: those of `before_read`, or not DataLoss: retry later.
  absl::Status CheckIndexes(const BeforeRead& before_read,
                            std::vector<absl::Status>& damages) const;

  // --- Blocks ---

  // True if the slices of a range need not be contiguous in the stored text.
  bool has_layout() const { return info_.has_layout; }

  // Returns the blocks that `range` covers, in logical order; none for an empty
  // range. With a layout a block may occur several times.
  // Errors: OutOfRange  `range` does not lie within [0, info().size_bytes].
  absl::StatusOr<std::vector<BlockSlice>> Plan(LogicalRange range) const;

  // Decoded size of a block.
  // REQUIRES for this and the next: the block exists.
  uint32_t BlockSizeBytes(BlockAddress block) const;
  // Extent of the whole frame: header, payload and checksum (FORMAT.md: "block
  // frame").
  Extent BlockExtent(BlockAddress block) const;
  // Number of blocks of one segment; start and size of each of them; offset of
  // the segment in the logical space; and the layout of its text in its blocks.
  // REQUIRES for these: segment_index < segment_count.
  uint64_t SegmentBlockCount(uint32_t segment_index) const;
  const BlockSpans& SegmentBlocks(uint32_t segment_index) const;
  uint64_t SegmentStart(uint32_t segment_index) const;
  // Ordinal of its first document, likewise.
  uint64_t FirstOrdinal(uint32_t segment_index) const;
  const SegmentLayout& SegmentLayoutOf(uint32_t segment_index) const;

  // Checks the frame read from BlockExtent(block) and decodes parts of its
  // text, which need not be adjacent. The checksum detects damage anywhere in
  // the frame; the codec need not.
  // REQUIRES: the parts lie in the block, which has BlockSizeBytes(block).
  // Errors: DataLoss  checksum, header or codec; the message names segment and
  //                   block.
  absl::Status DecodeBlock(BlockAddress block, ByteView frame,
                           std::span<const BlockPart> parts,
                           PayloadCodec::Scratch& scratch) const;

  // Checks the frame read from BlockExtent(block) without decoding its payload.
  // Errors: DataLoss  checksum or header; the message names segment and block.
  absl::Status CheckBlock(BlockAddress block, ByteView frame) const;

  // Reads a stored block into `frame` with a blocking pread, and checks it. The
  // result is a view into `frame`.
  // Errors: DataLoss  checksum or header, or the file cannot be read.
  absl::StatusOr<Payload> ReadPayload(BlockAddress block,
                                      std::vector<uint8_t>& frame) const;

  // Reads and decodes one block with a blocking pread: for the offline
  // subcommands. Errors: as DecodeBlock(); DataLoss also where the file cannot
  // be read.
  absl::Status ReadBlock(BlockAddress block, MutableByteView raw,
                         PayloadCodec::Scratch& scratch) const;

  // Reads the checksums of a segment's text; none if it has none.
  // REQUIRES: segment_index < segment_count. Errors: DataLoss.
  absl::StatusOr<std::vector<TextChecksum>> ReadTextChecksums(
      uint32_t segment_index) const;

  // --- Documents ---
  //
  // Look-ups with `end` see only documents with lower ordinals: those of an
  // ArchiveView if it is the view's document_count.

  // See DocumentCursor for many documents. Errors: OutOfRange  no such
  // document.
  absl::StatusOr<Document> GetDocument(DocumentOrdinal ordinal) const;

  // Upper bound on the size of id and attributes of one document together: the
  // sum of the longest of each.
  uint64_t DescriptionSizeBytesMax() const {
    return description_size_bytes_max_;
  }

  // Returns GetDocument(ordinal).range without reading the rest.
  absl::StatusOr<LogicalRange> GetDocumentRange(DocumentOrdinal ordinal) const;
  // True if the document was removed (FORMAT.md, "Compatibility"): its text is
  // zeros. Also true if it may have been, and damaged indexes hide it.
  // REQUIRES: the document exists.
  bool IsRedacted(DocumentOrdinal ordinal) const;
  // Returns all documents with exactly this id, in order of ordinal.
  // Errors: NotFound  there is none.
  absl::StatusOr<std::vector<DocumentOrdinal>> FindDocuments(
      absl::string_view id) const;

  // Fields that documents can have, those of all segments. DocumentFieldReader
  // (field_reader.h) reads their values.
  const std::vector<FieldColumn>& fields() const { return fields_; }

  // One opened segment, with its fields. Valid as long as the archive.
  // REQUIRES: segment_index < segment_count.
  const SegmentReader& ReaderOf(uint32_t segment_index) const;

  // Deposited files, of which deposit_reader.h reads the bytes.
  const DepositedFiles& deposited_files() const { return *deposited_files_; }

  // A segment, and its documents.
  struct DocumentsOfSegment {
    uint32_t segment_index = 0;
    uint64_t first_ordinal = 0;
    uint64_t document_count = 0;
  };

  // REQUIRES: the document exists.
  DocumentsOfSegment SegmentAt(DocumentOrdinal ordinal) const;

  static constexpr uint64_t kAllDocuments = UINT64_MAX;

  // Number of documents with exactly one id, and one of them.
  struct FoundDocument {
    uint64_t count = 0;
    // Unset if there are fewer documents.
    std::optional<DocumentOrdinal> ordinal = std::nullopt;
  };

  // Returns number `occurrence` of FindDocuments(id), from 0, or the last one.
  // Takes the time of a few look-ups, however many there are.
  FoundDocument FindDocument(absl::string_view id,
                             std::optional<uint64_t> occurrence,
                             uint64_t end = kAllDocuments) const;
  // Returns the document that `selection` selects, also in the time of a few
  // look-ups; unset if none has one of its types.
  FoundDocument FindCapture(absl::string_view id,
                            const DocumentSelection& selection,
                            uint64_t end = kAllDocuments) const;
  // Returns at most `count_max` of the record types of the documents of the id,
  // each once. `is_left_out` is as in DocumentSelection.
  std::vector<std::string> RecordTypesOf(
      absl::string_view id, size_t count_max, uint64_t end = kAllDocuments,
      const OrdinalPredicate* is_left_out = nullptr) const;

  // Number of a document among those with its id, from 0, and their number.
  struct Occurrence {
    uint64_t number = 0;
    uint64_t count = 0;
  };

  // `id` is that of the document, whose ordinal is below `end`. Takes the time
  // of a few look-ups. REQUIRES: the document exists.
  Occurrence OccurrenceOf(DocumentOrdinal ordinal, absl::string_view id,
                          uint64_t end = kAllDocuments) const;
  // Returns the document that holds a byte of the logical space. Empty
  // documents hold none. Errors: OutOfRange  past the end.
  absl::StatusOr<DocumentOrdinal> DocumentAt(LogicalOffset offset) const;

  // Entry of a listing: a document, or all documents with a common prefix.
  // Entries are ordered by (id, ordinal), bytewise.
  struct IdCursor {
    std::string id;
    uint64_t ordinal = 0;
    // Then `id` is the prefix, and `ordinal` has no meaning.
    bool is_common_prefix = false;
  };

  struct Listing {
    // Documents whose id starts with it.
    absl::string_view prefix = {};
    // Unless empty, a document whose id has these bytes after `prefix` is not
    // listed. Its common prefix is listed, once: the id up to the end of the
    // first delimiter that begins after `prefix`.
    absl::string_view delimiter = {};
    // Starts after this entry unless null.
    const IdCursor* after = nullptr;
    uint64_t end = kAllDocuments;
  };

  // Work of a listing.
  struct ListingCost {
    // Searches in the sorted ids of a segment.
    uint64_t search_count = 0;
    // Ids that were read.
    uint64_t id_count = 0;
  };

  // Calls one of the functions for each entry, in order, until one returns
  // false. Documents with a common prefix are passed by one search in each
  // segment that has some of them, however many they are. The prefix is valid
  // during the call.
  ListingCost VisitListing(
      const Listing& listing,
      absl::FunctionRef<bool(const Document&)> visit_document,
      absl::FunctionRef<bool(absl::string_view common_prefix)> visit_prefix)
      const;

  // VisitListing() of all documents with a prefix.
  void VisitDocuments(absl::string_view prefix,
                      const std::optional<IdCursor>& after,
                      absl::FunctionRef<bool(const Document&)> visit) const;

 private:
  friend class DocumentCursor;
  class ListingWalk;
  struct OpenedSegment;
  struct Segment;
  struct Codec;

  explicit Archive(std::string path);
  const CodecContext& context() const;
  absl::Status Load(const ArchiveDirectory& directory,
                    const ArchiveOpenOptions& options);

  // Takes the codec and its context from `shared`, or reads them.
  absl::Status CheckManifest(const BeforeRead& before_read,
                             std::vector<absl::Status>& damages) const;
  absl::Status LoadCodec(const Manifest& manifest, const ArchiveFiles& files,
                         const ArchiveOpenOptions& options);
  // Sets the segments and their filters, but not their starts.
  absl::Status OpenSegments(const Manifest& manifest, ArchiveFiles& files,
                            const ArchiveOpenOptions& options);
  static absl::StatusOr<std::shared_ptr<const OpenedSegment>> OpenSegment(
      SegmentFile file, const Manifest& manifest,
      const ManifestSegment& description, const ArchiveOpenOptions& options);
  // Upper bound on the memory of the parts of an archive that this one has.
  uint64_t SharedBytes(const Manifest& manifest,
                       const ArchiveFiles& files) const;
  // Returns the opened segment of the description and file; null if there is
  // none.
  std::shared_ptr<const OpenedSegment> FindOpened(
      const Manifest& manifest, const ManifestSegment& segment,
      const FileIdentity& file) const;
  void JoinDeposits();
  // Sets `fields_`. Errors: DataLoss  a field has two types.
  absl::Status JoinFields();
  const SegmentReader& SegmentOf(BlockAddress block) const;
  // Appends the slices of a part of one segment's text to `slices`.
  void PlanInSegment(size_t segment_index, uint64_t offset, uint64_t size_bytes,
                     std::vector<BlockSlice>& slices) const;
  // The segment of a document. REQUIRES: ordinal < info_.document_count.
  const Segment& SegmentOfDocument(uint64_t ordinal) const;
  // The index of the segment of a byte. REQUIRES: offset < info_.size_bytes.
  size_t SegmentIndexAt(uint64_t offset) const;
  absl::Status CheckOrdinal(DocumentOrdinal ordinal) const;
  // Returns a state of the history, then of the redacted states.
  const ArchiveState& StateAt(uint32_t index) const;
  const std::string path_;
  ArchiveInfo info_;
  ArchiveMemory memory_;
  uint64_t memory_bytes_max_ = 0;
  std::shared_ptr<const Codec> codec_;
  std::vector<Segment> segments_;
  std::vector<FieldColumn> fields_;
  std::unique_ptr<DepositedFiles> deposited_files_;
  // Indices in `segments_`, by SegmentNumber().
  absl::flat_hash_map<uint32_t, uint32_t> index_of_number_;
  uint64_t description_size_bytes_max_ = 0;
  // Indexes for StateAt(), by uuid.
  std::vector<uint32_t> states_;
  std::vector<FileIdentity> files_;
  std::string direct_io_note_;
  std::vector<absl::Status> index_damages_;
};

inline ArchiveView::ArchiveView(const Archive& whole)
    : archive(&whole),
      uuid(whole.info().uuid),
      size_bytes(whole.info().size_bytes),
      document_count(whole.info().document_count) {}

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_ARCHIVE_H_
