// SPDX-License-Identifier: GPL-3.0-or-later
//
// Writes one segment file.
#ifndef QUIRE_SERVER_ARCHIVE_SEGMENT_WRITER_H_
#define QUIRE_SERVER_ARCHIVE_SEGMENT_WRITER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/archive/files/file_io.h"
#include "server/archive/format/archive_description.h"
#include "server/archive/format/layout_section.h"
#include "server/archive/format/manifest.h"
#include "server/archive/format/segment_format.h"
#include "server/archive/index/document_index_builder.h"
#include "server/archive/kept_blocks.h"

namespace quire {

// Thread-compatible. ArchiveWriter documents the calls of the same name.
class SegmentWriter {
 public:
  // Creates the file in the directory `directory_fd`, which must stay open
  // until this returns; `directory` is its path for messages. Errors: as
  // FileWriter.
  static absl::StatusOr<SegmentWriter> Create(int directory_fd,
                                              const std::string& directory,
                                              const SegmentHeader& header,
                                              bool blocks_vary);
  // Goes on with the file that has these blocks, which come first; there is at
  // least one.
  static absl::StatusOr<SegmentWriter> Continue(int directory_fd,
                                                const std::string& directory,
                                                const SegmentHeader& header,
                                                bool blocks_vary,
                                                KeptBlocks kept);

  // The next of the blocks kept; null after the last.
  const KeptBlock* NextKept() const {
    return block_sizes_.size() < kept_.size() ? &kept_[block_sizes_.size()]
                                              : nullptr;
  }

  // Takes NextKept() as the next block, which has that many bytes of text.
  // REQUIRES: there is one.
  // Errors: FailedPrecondition  it cannot be a block of that size.
  absl::Status KeepBlock(uint64_t size_bytes);
  absl::Status AppendBlock(ByteView raw, ByteView stored);
  absl::Status AddDocument(const NewDocument& document);
  absl::Status SetLayout(LayoutSection layout, DocumentIndexBuilder documents);

  // Writes and syncs the blocks so far, for a segment that will not be
  // finished.
  absl::Status WriteBuffered() { return writer_.Finish(); }

  // The largest block of those that vary; 0 if they turned out not to.
  // REQUIRES: Finish() was called.
  uint32_t varying_block_size_bytes_max() const;

  // Writes the sections and the footer and syncs the file.
  absl::StatusOr<ManifestSegment> Finish();

 private:
  SegmentWriter(const SegmentHeader& header, std::string file,
                FileWriter writer, bool blocks_vary);
  // Whether a block of that size may come next.
  absl::Status CheckBlockSize(uint64_t size_bytes) const;
  void CountBlock(uint64_t size_bytes, uint64_t payload_size_bytes);
  absl::Status AppendSection(SectionType type, ByteView raw);
  // Whether some block has another size than all would have otherwise.
  bool DoBlocksVary() const;
  // What the blocks and the documents say against each other and the layout.
  absl::Status CheckSizes() const;

  SegmentHeader header_;
  std::string file_;
  FileWriter writer_;
  bool blocks_vary_;
  SegmentFooter footer_;
  // Of the blocks.
  uint64_t text_size_bytes_ = 0;
  // Of the last block; kept for its memory.
  std::vector<uint8_t> frame_;
  // What Continue() was given.
  std::vector<KeptBlock> kept_;
  // Payload sizes: 8 bytes a block until the segment ends.
  std::vector<uint64_t> block_sizes_;
  // Of the blocks' text, where they vary.
  std::vector<uint64_t> block_text_sizes_;
  DocumentIndexBuilder documents_;
  std::optional<LayoutSection> layout_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_SEGMENT_WRITER_H_
