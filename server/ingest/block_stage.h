// SPDX-License-Identifier: GPL-3.0-or-later
//
// The last stage of a build: text becomes blocks, and these go into the
// archive.
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
#include "server/ingest/block_cutter.h"
#include "server/ingest/parallel_encoder.h"

namespace quire {

struct BlockStageOptions {
  uint32_t block_size_bytes = 0;
  // Not null: says what size blocks have instead; must outlive the stage.
  BlockCutter* cutter = nullptr;
  // That encode; at least 1.
  uint32_t threads = 1;
  // The writer has blocks of an earlier build (ArchiveWriter::Continue()).
  bool may_be_kept = false;
  // Not null: an archive of the same text from the first byte on, whose blocks
  // are what the codec would make of their text (HasBlocksOf()). They are
  // copied where a block is one of them.
  const Archive* copied = nullptr;
};

// What became of a block.
struct StagedBlock {
  uint64_t size_bytes = 0;
  uint64_t stored_size_bytes = 0;
  // Stored as it is.
  bool is_raw = false;
  // Of an earlier build; it did not have to be encoded.
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

  // Where the next bytes of the text go: what is left of the current block, or
  // all of the next one. Never empty; stays valid until Advance().
  // Errors: those of ParallelEncoder::Acquire(), and of the writer.
  absl::StatusOr<MutableByteView> Buffer();

  // An earlier build has encoded the block that Buffer() is of: nobody looks at
  // the bytes there.
  bool is_kept() const { return is_kept_; }

  // The text goes on with the first `size_bytes` there. A block that is full
  // goes on to the archive. Errors: as Buffer().
  absl::Status Advance(size_t size_bytes);

  // Makes what is left of the text a block, the last of its segment, and writes
  // all blocks. Errors: as Buffer().
  absl::Status EndSegment();

  uint64_t copied_block_count() const { return copied_block_count_; }

  // Blocks stored as they are because their encoding did not decode to their
  // text; copied ones included.
  uint64_t mismatched_block_count() const { return encoder_->mismatch_count(); }

 private:
  BlockStage(ArchiveWriter& writer, const BlockStageOptions& options,
             OnBlock on_block);
  absl::Status StartBlock();
  absl::Status SubmitBlock();
  absl::Status KeepBlock(size_t size_bytes);
  // Submits the block as the other archive has it, if it does.
  absl::StatusOr<bool> CopyBlock(size_t size_bytes);

  ArchiveWriter& writer_;
  const BlockStageOptions options_;
  const OnBlock on_block_;
  std::unique_ptr<ParallelEncoder> encoder_;
  // The block that is being filled; empty if none.
  MutableByteView block_;
  size_t block_filled_ = 0;
  bool is_kept_ = false;
  // What Buffer() is of for blocks that are kept.
  std::vector<uint8_t> unused_;
  // Blocks of the current segment that were not kept.
  uint64_t segment_encoded_count_ = 0;
  // Of the text of all blocks submitted.
  uint64_t submitted_bytes_ = 0;
  uint64_t copied_block_count_ = 0;
  std::vector<uint8_t> frame_;
};

// Whether the archive's blocks are what the codec of `options` would make of
// their text.
bool HasBlocksOf(const Archive& archive, const ArchiveWriterOptions& options,
                 const CodecContext& context);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_BLOCK_STAGE_H_
