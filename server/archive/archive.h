// SPDX-License-Identifier: GPL-3.0-or-later
//
// An archive, opened for reading. FORMAT.md describes the files.
//
// Opening reads and checks everything but the blocks: manifest, dictionary,
// symbol table, block indexes, document indexes; all of it stays in RAM. Blocks
// are read by whoever knows the device (server/storage), from the extents
// handed out here, and come back here to be checked and decoded.
#ifndef QUIRE_SERVER_ARCHIVE_ARCHIVE_H_
#define QUIRE_SERVER_ARCHIVE_ARCHIVE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/block_codec.h"
#include "server/archive/direct_file.h"
#include "server/archive/positions.h"

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

// What an archive is, without its contents.
struct ArchiveInfo {
  // 16 bytes as 36 characters; derived from the contents, so equal archives
  // have equal uuids.
  std::string uuid;
  uint32_t format_version = 0;
  CodecSpec codec;
  uint32_t block_size_bytes = 0;
  // Of the logical space.
  uint64_t size_bytes = 0;
  // Of all files of the archive on disk.
  uint64_t stored_size_bytes = 0;
  uint64_t block_count = 0;
  uint64_t document_count = 0;
  uint32_t segment_count = 0;
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
  uint64_t document_starts_bytes = 0;
  uint64_t document_ids_bytes = 0;
  uint64_t document_attributes_bytes = 0;

  uint64_t total_bytes() const {
    return dictionary_bytes + symbol_table_bytes + codec_bytes +
           block_index_bytes + document_starts_bytes + document_ids_bytes +
           document_attributes_bytes;
  }
};

// One block, and the part of it that a range covers.
struct BlockSlice {
  BlockAddress block;
  // Bytes of the decoded block.
  uint32_t offset_in_block = 0;
  uint32_t size_bytes = 0;
};

struct ArchiveOpenOptions {
  // Affects performance: whether extents can be read past the page cache, too.
  DirectIo direct_io = DirectIo::kOff;
};

// Immutable and thread-safe. Shared: whoever reads one of its extents keeps a
// reference, as its files stay open only while it lives.
class Archive {
 public:
  // Opens the archive in the folder `path`.
  // Errors: NotFound            no such folder, or no MANIFEST in it.
  //         DataLoss            a file is damaged or cut; the message names the
  //                             file, what was found and what was expected.
  //         FailedPrecondition  written in a format or by a codec that this
  //                             program does not know; or the file system
  //                             cannot do the direct I/O asked for.
  static absl::StatusOr<std::shared_ptr<const Archive>> Open(
      const std::string& path, const ArchiveOpenOptions& options = {});

  // What Open() would hold in RAM, from the manifest alone, within 10 % or
  // rounded up. Errors: as Open().
  static absl::StatusOr<uint64_t> EstimateMemoryBytes(const std::string& path);

  virtual ~Archive() = default;

  virtual const std::string& path() const = 0;
  virtual const ArchiveInfo& info() const = 0;
  virtual const ArchiveMemory& memory() const = 0;
  // Uncompressed; empty where the codec uses none.
  virtual ByteView dictionary() const = 0;
  // As fsst/symbol_table.h serialises it, and checked; empty where there is
  // none.
  virtual ByteView symbol_table() const = 0;
  virtual const BlockCodec& codec() const = 0;
  // Why extents have no direct_fd, with the file's path, where that was left
  // open (DirectIo::kAuto); empty otherwise. For the log.
  virtual const std::string& direct_io_note() const = 0;

  // --- Blocks ---

  // The blocks that `range` covers, in logical order; none for an empty range.
  // Errors: OutOfRange  `range` does not lie within [0, info().size_bytes].
  virtual absl::StatusOr<std::vector<BlockSlice>> Plan(
      LogicalRange range) const = 0;

  // Decoded size of a block.
  // REQUIRES for this and the next: the block exists.
  virtual uint32_t BlockSizeBytes(BlockAddress block) const = 0;
  // Where the block lies with all that belongs to it: header, payload and
  // checksum (FORMAT.md: "block frame").
  virtual Extent BlockExtent(BlockAddress block) const = 0;
  // Number of blocks of one segment. REQUIRES: segment_index < segment_count.
  virtual uint64_t SegmentBlockCount(uint32_t segment_index) const = 0;
  // The block's part of the logical space.
  virtual LogicalRange BlockRange(BlockAddress block) const = 0;

  // Checks the frame read from BlockExtent(block) and decodes it to `raw`.
  // REQUIRES: raw.size() == BlockSizeBytes(block).
  // Errors: DataLoss  checksum, header or codec; the message names segment and
  //                   block.
  virtual absl::Status DecodeBlock(BlockAddress block, ByteView frame,
                                   MutableByteView raw,
                                   BlockCodec::Scratch& scratch) const = 0;

  // Checks the frame read from BlockExtent(block) without decoding it; what a
  // codec makes of its payload stays unknown.
  // Errors: DataLoss  checksum or header; the message names segment and block.
  virtual absl::Status CheckBlock(BlockAddress block, ByteView frame) const = 0;

  // Reads and decodes one block with a blocking pread: for the offline verbs.
  // Errors: as DecodeBlock(); DataLoss also where the file cannot be read.
  virtual absl::Status ReadBlock(BlockAddress block, MutableByteView raw,
                                 BlockCodec::Scratch& scratch) const = 0;

  // --- Documents ---

  // Errors: OutOfRange  no such document.
  virtual absl::StatusOr<Document> GetDocument(
      DocumentOrdinal ordinal) const = 0;
  // GetDocument(ordinal).range, without the rest.
  virtual absl::StatusOr<LogicalRange> GetDocumentRange(
      DocumentOrdinal ordinal) const = 0;
  // All documents with exactly this id, in order of ordinal.
  // Errors: NotFound  there is none.
  virtual absl::StatusOr<std::vector<DocumentOrdinal>> FindDocuments(
      absl::string_view id) const = 0;

  // Of the documents with exactly one id, how many there are, and one of them.
  struct FoundDocument {
    uint64_t count = 0;
    // Unset if there are not as many.
    std::optional<DocumentOrdinal> ordinal = std::nullopt;
  };

  // Number `occurrence` of FindDocuments(id), from 0, or the last one; in the
  // time of a few look-ups, of however many there are.
  virtual FoundDocument FindDocument(
      absl::string_view id, std::optional<uint64_t> occurrence) const = 0;
  // The document that holds a byte of the logical space. Empty documents hold
  // none. Errors: OutOfRange  past the end.
  virtual absl::StatusOr<DocumentOrdinal> DocumentAt(
      LogicalOffset offset) const = 0;

  // Where a listing stands. Ordered by (id, ordinal), bytewise.
  struct IdCursor {
    std::string id;
    uint64_t ordinal = 0;
  };

  // Calls `visit` for the documents whose id starts with `prefix`, in order of
  // (id, ordinal), those after `after` if given, until it returns false.
  virtual void VisitDocuments(
      absl::string_view prefix, const std::optional<IdCursor>& after,
      const std::function<bool(const Document&)>& visit) const = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_ARCHIVE_H_
