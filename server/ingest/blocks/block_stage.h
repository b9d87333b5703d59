// SPDX-License-Identifier: GPL-3.0-or-later
//
// The last stage before an archive is written: cuts text into blocks, encodes
// or copies these, and gives them to the archive's writer, in order.
#ifndef QUIRE_SERVER_INGEST_BLOCK_STAGE_H_
#define QUIRE_SERVER_INGEST_BLOCK_STAGE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/payload/payload_codec.h"
#include "server/archive/archive.h"
#include "server/archive/archive_writer.h"
#include "server/ingest/blocks/block_cutter.h"
#include "server/ingest/blocks/parallel_encoder.h"

namespace quire {

struct BlockStageOptions {
  uint32_t block_size_bytes = 0;
  // If not null, determines the block sizes instead; must outlive the stage.
  BlockCutter* cutter = nullptr;
  // Encoding threads; at least 1.
  uint32_t threads = 1;
  // The writer has blocks of an earlier build (ArchiveWriter::Continue()).
  bool may_be_kept = false;
  // If not null, an archive of the same text from the first byte on, whose
  // blocks equal the codec's encodings (HasBlocksOf()). Equal blocks are
  // copied.
  const Archive* copied = nullptr;
};

// Result for one block.
struct StagedBlock {
  uint64_t size_bytes = 0;
  uint64_t stored_size_bytes = 0;
  // Stored unencoded.
  bool is_raw = false;
  // From an earlier build; it was not encoded again.
  bool is_kept = false;
};

// Thread-compatible: one thread uses it, and `on_block` is called on that one.
class BlockStage {
 public:
  using OnBlock = std::function<void(const StagedBlock&)>;

  // `codec` and `writer` must outlive the stage.
  // Errors: as ParallelEncoder::Create().
  static absl::StatusOr<std::unique_ptr<BlockStage>> Create(
      const PayloadCodec& codec, ArchiveWriter& writer,
      const BlockStageOptions& options, OnBlock on_block);

  // Returns space for the next bytes of the text: the rest of the current
  // block, or the whole next one. Never empty; valid until Advance().
  // Errors: those of ParallelEncoder::Acquire(), and of the writer.
  absl::StatusOr<MutableByteView> Buffer();

  // True if an earlier build has encoded the block of Buffer(): its bytes are
  // ignored.
  bool is_kept() const { return is_kept_; }

  // Appends the first `size_bytes` of Buffer(). A full block is written to the
  // archive. Errors: as Buffer().
  absl::Status Advance(size_t size_bytes);

  // Makes the rest of the text the last block of its segment, and writes all
  // blocks. Errors: as Buffer().
  absl::Status EndSegment();

  // The next three take whole blocks of a text that is stored elsewhere
  // already. REQUIRES: no block is being filled; no cutter, no kept blocks, and
  // nothing copied. Errors: as Buffer().

  // Encodes a text, as blocks of at most block_size_bytes.
  absl::Status EncodeText(ByteView text);
  // Appends a block with its payload if the codec decodes that to `text`;
  // otherwise encodes it.
  absl::Status CopyIfDecodable(ByteView text, const Payload& payload);
  // Appends the payload of a block with `size_bytes` of text as it is.
  absl::Status Copy(uint64_t size_bytes, const Payload& payload);

  uint64_t copied_block_count() const { return copied_block_count_; }

  // Number of blocks of CopyIfDecodable() that were encoded.
  uint64_t reencoded_block_count() const { return encoder_->reencoded_count(); }

  // Returns the number of blocks stored unencoded because their encoding did
  // not decode to their text, including copied ones.
  uint64_t mismatched_block_count() const { return encoder_->mismatch_count(); }

 private:
  BlockStage(ArchiveWriter& writer, const BlockStageOptions& options,
             OnBlock on_block);
  absl::Status StartBlock();
  absl::Status SubmitBlock();
  absl::Status KeepBlock(size_t size_bytes);
  // Submits the other archive's block if it has the same text.
  absl::StatusOr<bool> CopyBlock(size_t size_bytes);

  ArchiveWriter& writer_;
  const BlockStageOptions options_;
  const OnBlock on_block_;
  std::unique_ptr<ParallelEncoder> encoder_;
  // Block being filled; empty if none.
  MutableByteView block_;
  size_t block_filled_ = 0;
  bool is_kept_ = false;
  // Buffer for kept blocks, whose bytes are ignored.
  std::vector<uint8_t> unused_;
  // Blocks of the current segment that were not kept.
  uint64_t segment_encoded_count_ = 0;
  // Text size of all submitted blocks.
  uint64_t submitted_bytes_ = 0;
  uint64_t copied_block_count_ = 0;
  std::vector<uint8_t> frame_;
};

// Returns true if the archive's blocks equal the encodings of the codec of
// `options`.
bool HasBlocksOf(const Archive& archive, const ArchiveWriterOptions& options,
                 const CodecContext& context);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_BLOCK_STAGE_H_
