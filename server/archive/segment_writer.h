// SPDX-License-Identifier: GPL-3.0-or-later
//
// Writes one segment file.
#ifndef QUIRE_SERVER_ARCHIVE_SEGMENT_WRITER_H_
#define QUIRE_SERVER_ARCHIVE_SEGMENT_WRITER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/payload/payload_codec.h"
#include "server/archive/files/file_io.h"
#include "server/archive/format/archive_description.h"
#include "server/archive/format/block_frame.h"
#include "server/archive/format/layout_section.h"
#include "server/archive/format/manifest.h"
#include "server/archive/format/segment_format.h"
#include "server/archive/index/block_spans.h"
#include "server/archive/index/document_index_builder.h"
#include "server/archive/kept_blocks.h"

namespace quire {

class SegmentReader;
struct LeftOut;

// Thread-compatible. ArchiveWriter documents the calls of the same name.
class SegmentWriter {
 public:
  // Creates the file in the directory `directory_fd`, which must stay open
  // until this returns; `directory` is its path for messages. Errors: as
  // FileWriter.
  static absl::StatusOr<SegmentWriter> Create(int directory_fd,
                                              const std::string& directory,
                                              const SegmentHeader& header);
  // Continues the file that has these blocks, at least one; they come first.
  static absl::StatusOr<SegmentWriter> Continue(int directory_fd,
                                                const std::string& directory,
                                                const SegmentHeader& header,
                                                KeptBlocks kept);

  // Returns the next of the kept blocks; null after the last.
  const KeptBlock* NextKept() const {
    return block_sizes_.size() < kept_.size() ? &kept_[block_sizes_.size()]
                                              : nullptr;
  }

  // Takes NextKept(), which has `size_bytes` of text, as the next block.
  // REQUIRES: there is one.
  // Errors: FailedPrecondition  it cannot be a block of that size.
  absl::Status KeepBlock(uint64_t size_bytes);

  absl::Status AppendBlock(ByteView raw, const Payload& payload) {
    return CopyBlock(raw.size(), StoredPayload(raw, payload));
  }

  absl::Status CopyBlock(uint64_t size_bytes, const Payload& payload);
  absl::Status AddDocument(const NewDocument& document);
  absl::Status SetLayout(LayoutSection layout, DocumentIndexBuilder documents);

  // See carried_documents.h.
  absl::Status CarryDocuments(const SegmentReader& from,
                              const LeftOut& left_out);

  absl::Status AddFieldColumns(std::span<const FieldColumn> columns) {
    return documents_.AddFieldColumns(columns);
  }

  // Writes and syncs the blocks so far, for a segment that will not be
  // finished.
  absl::Status WriteBuffered() { return writer_.Finish(); }

  // Largest text of a block so far.
  uint32_t block_size_bytes_max() const { return block_size_bytes_max_; }

  // Upper bound on the slices that 1 MiB of the text touches.
  // REQUIRES: Finish() succeeded.
  uint32_t slices_per_mib_max() const { return slices_per_mib_max_; }

  // Writes the sections and the footer and syncs the file.
  absl::StatusOr<ManifestSegment> Finish();

 private:
  SegmentWriter(const SegmentHeader& header, std::string file,
                FileWriter writer);
  // Errors: InvalidArgument  a block of that size is not allowed next.
  absl::Status CheckBlockSize(uint64_t size_bytes) const;
  void CountBlock(uint64_t size_bytes, uint64_t payload_size_bytes);
  absl::Status AppendSection(SectionType type, ByteView raw);
  // Appends a section whose bytes are stored as they are.
  absl::Status AppendStored(SectionType type, CompressionMethod method,
                            uint64_t size_bytes, ByteView stored);
  absl::Status AppendContainer();
  // Writes the sections of blocks and documents, and of the layout if there is
  // one.
  absl::Status AppendSections(bool has_layout);
  void CountSlices(bool has_layout);
  // Compares the sizes of blocks, documents and layout.
  absl::Status CheckSizes() const;

  SegmentHeader header_;
  std::string file_;
  FileWriter writer_;
  SegmentFooter footer_;
  uint64_t text_size_bytes_ = 0;
  // Frame of the last block; kept to reuse its memory.
  std::vector<uint8_t> frame_;
  // The blocks given to Continue().
  std::vector<KeptBlock> kept_;
  // Payload sizes: 8 bytes per block until the segment ends.
  std::vector<uint64_t> block_sizes_;
  // Sizes of the blocks' text.
  std::vector<BlockSpan> spans_;
  uint32_t block_size_bytes_max_ = 0;
  uint32_t slices_per_mib_max_ = 0;
  DocumentIndexBuilder documents_;
  std::optional<LayoutSection> layout_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_SEGMENT_WRITER_H_
