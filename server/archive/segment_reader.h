// SPDX-License-Identifier: GPL-3.0-or-later
//
// One segment file, opened: its indexes in RAM, its blocks by extent.
#ifndef QUIRE_SERVER_ARCHIVE_SEGMENT_READER_H_
#define QUIRE_SERVER_ARCHIVE_SEGMENT_READER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/base/positions.h"
#include "codecs/payload/payload_codec.h"
#include "server/archive/container/container_part.h"
#include "server/archive/files/archive_directory.h"
#include "server/archive/format/layout_section.h"
#include "server/archive/format/manifest.h"
#include "server/archive/format/segment_format.h"
#include "server/archive/index/block_spans.h"
#include "server/archive/index/document_index.h"
#include "server/archive/index/elias_fano.h"
#include "server/archive/index/segment_layout.h"
#include "server/archive/segment_container.h"

namespace quire {

// Movable. Thread-safe.
class SegmentReader {
 public:
  // Reads the segment that `expected` describes, except its blocks. Borrows the
  // open descriptors of `file`. `cancel`, if given, is checked periodically.
  // `index_damages` is as in DocumentIndex::Parse().
  // Errors: DataLoss, FailedPrecondition, Unavailable, Cancelled, ...; the
  //   message begins with the file's path.
  static absl::StatusOr<SegmentReader> Open(
      const SegmentFile& file, const Manifest& manifest,
      const ManifestSegment& expected, const std::atomic<bool>* cancel,
      std::vector<absl::Status>* index_damages = nullptr);

  // Opens as much of a damaged segment as can be used, for offline use. Adds
  // the damage to `damages`. Without its header, section table and trailer it
  // uses what `expected` describes; without the offsets of its blocks it
  // searches for them; without the sizes of their text it decodes the blocks to
  // prove a guess; without an index of ids or attributes documents have none.
  // Blocks that are not found fail in ReadFrame(). `codec` is null if it cannot
  // be made. Errors: as Open(), if no document can be read: sizes of blocks or
  //   documents or the layout are unusable.
  static absl::StatusOr<SegmentReader> OpenDamaged(
      const SegmentFile& file, const Manifest& manifest,
      const ManifestSegment& expected, const PayloadCodec* codec,
      std::vector<absl::Status>& damages);

  // Returns the sizes of the text of the blocks that OpenDamaged() would use.
  // Errors: as Open(), if they are unusable.
  static absl::StatusOr<BlockSpans> RecoverBlockSpans(
      const SegmentFile& file, const Manifest& manifest,
      const ManifestSegment& expected, const PayloadCodec* codec);

  // Describes a segment whose manifest is lost, from its trailer and sections.
  // The result fits OpenDamaged(); its span_count is 0 if it is unknown.
  // Errors: DataLoss  the trailer or the layout is damaged.
  static absl::StatusOr<ManifestSegment> Describe(const ReadableFile& file,
                                                  const SegmentHeader& header);

  // Number of sections of OpenDamaged() that are used although no checksum
  // proves them: ids, times, types and text of documents can be wrong.
  uint64_t unproved_section_count() const { return unproved_section_count_; }

  // Path of the file, for messages.
  const std::string& file() const { return file_; }

  // Descriptor of the file, open as long as what Open() borrowed.
  int fd() const { return fd_; }

  uint64_t block_count() const { return footer_.block_count; }

  uint64_t size_bytes() const { return footer_.size_bytes; }

  const SegmentFooter& footer() const { return footer_; }

  const DocumentIndex& documents() const { return documents_; }

  const SegmentLayout& layout() const { return layout_; }

  const SegmentContainer& container() const { return container_; }

  // Without columns if no document has a field.
  const SegmentFields& fields() const { return container_.fields; }

  // Without portions if it has no part of a deposited file.
  const SegmentDeposits& deposits() const { return container_.deposits; }

  // Extent of a part of the container. REQUIRES: a sub-section refers to it.
  Extent PartExtent(const ContainerPart& part) const;
  // Reads and decodes it with a blocking pread. Errors: as Open().
  absl::StatusOr<PartBytes> ReadPart(const ContainerPart& part) const;
  // Reads and checks its stored bytes, to copy them. Errors: as Open().
  absl::StatusOr<std::vector<uint8_t>> ReadStoredPart(
      const ContainerPart& part) const;

  // Reads an extent of the file. Blocks. Errors: DataLoss  it is damaged, or
  // not in the file.
  using ReadExtent =
      std::function<absl::Status(const Extent& extent, MutableByteView stored)>;

  // Reads the data of the container with `read`, in pieces of a quarter MiB,
  // and compares their checksum with the one in the table.
  // Errors: those of `read`; DataLoss  the checksum differs.
  absl::Status CheckContainer(const ReadExtent& read) const;
  // The same with blocking preads. Errors: as Open().
  absl::Status CheckContainer() const;

  // Loads with ReadPart(). This segment must outlive it.
  PartLoader part_loader() const {
    return [this](const ContainerPart& part)
               -> absl::StatusOr<std::optional<PartBytes>> {
      return ReadPart(part);
    };
  }

  // Sizes of the text of the blocks.
  const BlockSpans& blocks() const { return blocks_; }

  // REQUIRES for both: block_index < block_count().
  uint32_t BlockSizeBytes(uint64_t block_index) const {
    return blocks_.SizeOf(block_index);
  }

  Extent BlockExtent(uint64_t block_index) const;

  // Reads the checksums of the documents' text; none if the segment has none.
  // Errors: as Open().
  absl::StatusOr<std::vector<TextChecksum>> ReadTextChecksums() const;

  // See Archive::DecodeBlock().
  absl::Status DecodeBlock(uint64_t block_index, ByteView frame,
                           std::span<const BlockPart> parts,
                           const PayloadCodec& codec,
                           PayloadCodec::Scratch& scratch) const;
  // See Archive::CheckBlock().
  absl::Status CheckBlock(uint64_t block_index, ByteView frame) const;
  // Reads the block's frame into `frame` with a blocking pread, and checks it;
  // returns its checksum. Errors: as Archive::ReadBlock().
  absl::StatusOr<uint64_t> ReadFrame(uint64_t block_index,
                                     std::vector<uint8_t>& frame) const;
  // Decodes a whole block, from a frame that ReadFrame() returned.
  absl::Status DecodeCheckedFrame(uint64_t block_index, ByteView frame,
                                  MutableByteView raw,
                                  const PayloadCodec& codec,
                                  PayloadCodec::Scratch& scratch) const;

  // Reads the file except its blocks and the data of its container again, in
  // small pieces, and adds what differs from when it was opened to `damages`.
  // Errors: those of `before_read`, or not DataLoss: retry later.
  absl::Status CheckIndexes(const BeforeRead& before_read,
                            std::vector<absl::Status>& damages) const;

  void AddMemory(ArchiveMemory& memory) const;
  // Upper bound on what AddMemory() adds.
  static uint64_t EstimateMemoryBytes(const ManifestSegment& segment);
  // Further memory that Open() takes while it runs.
  static uint64_t EstimateOpeningBytes(const Manifest& manifest,
                                       const ManifestSegment& segment);

 private:
  SegmentReader() = default;
  absl::Status ReadHeader(const Manifest& manifest,
                          const ManifestSegment& expected);
  // Tolerates a damaged end magic with `restores_magic`.
  absl::Status ReadFooter(uint64_t file_size_bytes,
                          bool restores_magic = false);
  // Compares footer_ with the manifest.
  absl::Status CheckFooter(const ManifestSegment& expected) const;
  // Makes a footer from `expected`, the sections themselves, and what is left
  // of the section table. The file has `found_size_bytes`. Adds sections that
  // are missing, or whose contents no checksum proves, to `damages`. If the
  // manifest proves the table, sections that differ from it are damaged.
  absl::Status RecoverFooter(const ManifestSegment& expected,
                             uint64_t found_size_bytes,
                             std::vector<absl::Status>& damages);
  // The part of OpenDamaged() up to the blocks.
  absl::Status RecoverBlocks(const SegmentFile& file, const Manifest& manifest,
                             const ManifestSegment& expected,
                             const PayloadCodec* codec,
                             std::vector<absl::Status>& damages);
  // Sets frames_ from the block index, or by a search if it is damaged; returns
  // the damage.
  absl::Status RecoverFrames();
  // True if undamaged blocks decode to the sizes in blocks_, a block that has
  // not `block_size_bytes` is among them, and the others can have no other
  // sizes.
  bool BlocksProveSizes(const ManifestSegment& expected,
                        uint32_t block_size_bytes,
                        const PayloadCodec* codec) const;
  absl::Status ReadBlockSpans(const Manifest& manifest,
                              const ManifestSegment& expected,
                              const std::atomic<bool>* cancel);
  absl::Status ReadBlockSizes(const std::atomic<bool>* cancel);
  absl::Status ReadDocumentIndex(const std::atomic<bool>* cancel,
                                 std::vector<absl::Status>* index_damages);
  absl::Status InBlock(uint64_t block_index, const absl::Status& status) const;
  absl::Status ParseBlockSizes(ByteView section);
  // Makes a layout of one run if the segment has no section for it.
  absl::Status ReadLayout(const ManifestSegment& expected,
                          const std::atomic<bool>* cancel);
  absl::Status ReadContainer(const std::atomic<bool>* cancel);
  // Checks the upper bound that the manifest states.
  absl::Status CheckSlices(uint32_t slices_per_mib_max) const;
  // Returns the section, checked and decompressed.
  absl::StatusOr<std::string> ReadSection(
      const SectionEntry& entry, const std::atomic<bool>* cancel) const;

  int fd_ = -1;
  int direct_fd_ = -1;
  uint32_t direct_alignment_bytes_ = 1;
  std::string file_;
  SegmentHeader header_;
  SegmentFooter footer_;
  // Start of each frame, and the end of the last.
  EliasFano frames_;
  BlockSpans blocks_;
  DocumentIndex documents_;
  SegmentLayout layout_;
  SegmentContainer container_;
  // Offset of the container's data in the file.
  uint64_t container_offset_ = 0;
  uint64_t unproved_section_count_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_SEGMENT_READER_H_
