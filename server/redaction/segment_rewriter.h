// SPDX-License-Identifier: GPL-3.0-or-later
//
// Writes the segments of an archive anew, without the removed documents' text.
#ifndef QUIRE_SERVER_REDACTION_SEGMENT_REWRITER_H_
#define QUIRE_SERVER_REDACTION_SEGMENT_REWRITER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/payload/inflated_count.h"
#include "codecs/payload/payload_codec.h"
#include "server/archive/archive.h"
#include "server/archive/files/archive_change.h"
#include "server/archive/format/layout_section.h"
#include "server/archive/format/manifest.h"
#include "server/archive/format/member_count.h"
#include "server/archive/segment_writer.h"
#include "server/ingest/blocks/parallel_encoder.h"
#include "server/redaction/inflated_block.h"
#include "server/redaction/segment_redaction.h"

namespace quire {

// Counts over the blocks of segments.
struct RewrittenBlocks {
  // With new text.
  uint64_t changed_count = 0;
  // That the new dictionary decodes to another text: encoded anew.
  uint64_t reencoded_count = 0;
};

// Everything that is referenced must outlive the rewriter.
struct SegmentRewriterOptions {
  // The archive before the change.
  const Archive& archive;
  // Encodes with the dictionary of the archive after the change, which is not
  // the one before if `is_dictionary_new`. The payloads of blocks with the same
  // text are copied, or, with a new dictionary, encoded anew if it decodes them
  // to another text.
  const PayloadCodec& codec;
  bool is_dictionary_new = false;
  // At least 1.
  uint32_t threads = 1;
  // Called with the size of each block's text.
  OnTextRead on_read;
};

// Thread-compatible.
class SegmentRewriter {
 public:
  // New segments are written to `change`. `manifest` is that of the archive
  // before, with the new dictionary; Rewrite() changes its segments, members
  // and found members. Both must outlive the rewriter.
  SegmentRewriter(const SegmentRewriterOptions& options,
                  const ArchiveChange& change, Manifest& manifest);

  // Replaces the segment by one with the next number, without the documents
  // `removed`, which are ordinals of the archive, in order. Errors: DataLoss  a
  // block is damaged; those of SegmentWriter, ParallelEncoder and `on_read`;
  //         InvalidArgument  all segment numbers are used.
  absl::Status Rewrite(uint32_t segment_index, const SegmentRedaction& plan,
                       std::span<const uint64_t> removed);

  // Completes the manifest; call once, at the end.
  RewrittenBlocks Finish();

 private:
  absl::Status WriteBlocks(uint32_t segment_index,
                           const SegmentRedaction& plan);
  absl::Status WriteBlock(BlockAddress block, uint64_t begin,
                          const SegmentRedaction& plan,
                          ParallelEncoder& encoder);
  // Encodes a text, which may be more than one block.
  absl::Status Encode(ByteView text, ParallelEncoder& encoder);
  absl::Status WriteDocuments(uint32_t segment_index,
                              const SegmentRedaction& plan,
                              std::span<const uint64_t> removed);
  // Returns the checksums of the text of the new segment; none if the old one
  // has none.
  absl::StatusOr<std::vector<TextChecksum>> ChecksumText(
      uint32_t segment_index, std::span<const TextInterval> removed);
  absl::Status Append(ByteView raw, const Payload& payload);

  const SegmentRewriterOptions options_;
  const ArchiveChange& change_;
  Manifest& manifest_;
  InflatedBlock block_;
  std::optional<SegmentWriter> writer_;
  // For a part of a text, or a text of which only the size matters.
  std::vector<uint8_t> buffer_;
  MemberCount members_;
  InflatedCount inflated_before_;
  InflatedCount inflated_after_;
  RewrittenBlocks blocks_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_REDACTION_SEGMENT_REWRITER_H_
