// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/read/answer_read.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/btree_set.h"

#include "codecs/base/memory_guard.h"
#include "codecs/base/status_macros.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/block_frame.h"
#include "server/service/read/answer_bytes.h"
#include "server/service/read/wire_encoder.h"

namespace quire {
namespace {

// Text that is encoded or decoded on a thread of gRPC: a tenth of a
// millisecond's work. More goes to the decode pool.
constexpr uint64_t kInlineWorkBytesMax = 64 << 10;

bool UsesStoredTable(const ServedArchive& archive) {
  return FindCodec(archive.archive->info().codec.id)->needs_symbol_table;
}

BlockForm FormFor(const ServedArchive& archive, v1::WireEncoding encoding) {
  switch (encoding) {
    case v1::WIRE_ENCODING_STORED:
      return BlockForm::kStored;
    case v1::WIRE_ENCODING_FSST:
      // Such blocks are stored in codes of the very table.
      return UsesStoredTable(archive) ? BlockForm::kStored : BlockForm::kText;
    default:
      return BlockForm::kText;
  }
}

// What a slice takes while it is planned, fetched and sent, in addition to its
// block: counted where there may be many to a block.
constexpr uint64_t kSliceBytes = 512;

uint64_t SliceBytes(const ServedArchive& archive, size_t count) {
  return archive.archive->has_layout() ? count * kSliceBytes : 0;
}

bool AreInARow(const Archive& archive, const std::vector<BlockSlice>& slices) {
  for (size_t i = 1; i < slices.size(); ++i) {
    const BlockSlice& last = slices[i - 1];
    const BlockSlice& slice = slices[i];
    const bool is_next_block =
        slice.block.segment_index == last.block.segment_index
            ? slice.block.block_index == last.block.block_index + 1
            : slice.block.block_index == 0;
    if (!is_next_block || slice.offset_in_block != 0 ||
        last.offset_in_block + last.size_bytes !=
            archive.BlockSizeBytes(last.block)) {
      return false;
    }
  }
  return true;
}

// Coded answers say what is left out at their ends, and nowhere else.
v1::WireEncoding EncodingOf(const ServedArchive& archive,
                            const std::vector<BlockSlice>& slices,
                            v1::WireEncoding encoding) {
  return !archive.archive->has_layout() || AreInARow(*archive.archive, slices)
             ? encoding
             : v1::WIRE_ENCODING_IDENTITY;
}

uint64_t SizeOf(const std::vector<BlockSlice>& slices) {
  uint64_t size_bytes = 0;
  for (const BlockSlice& slice : slices) {
    size_bytes += slice.size_bytes;
  }
  return size_bytes;
}

// What an answer takes in addition to its blocks.
uint64_t OutputBytesMax(const ServedArchive& archive, uint64_t size_bytes,
                        v1::WireEncoding encoding) {
  if (encoding == v1::WIRE_ENCODING_FSST) {
    // Blocks with a table of their own are decoded first.
    const uint64_t decoded_bytes = UsesStoredTable(archive) ? size_bytes : 0;
    return FsstBufferSizeMax(size_bytes) + decoded_bytes;
  }
  return 0;
}

bool IsLongWork(v1::WireEncoding encoding,
                const std::vector<BlockPiece>& pieces) {
  return encoding == v1::WIRE_ENCODING_FSST &&
         SizeBytesOf(pieces) > kInlineWorkBytesMax;
}

// An answer whose blocks are being fetched or encoded. `done` is called once,
// by the first of these that ends it; none of them throws.
struct PendingAnswer {
  BlockStore* store = nullptr;
  std::shared_ptr<const ServedArchive> archive = nullptr;
  std::vector<BlockSlice> slices = {};
  v1::WireEncoding encoding = v1::WIRE_ENCODING_IDENTITY;
  AnswerDone done = nullptr;
  // Once they are there.
  std::vector<BlockPiece> pieces = {};

  void Encode() {
    done(OrNoMemory("encode an answer", [&] {
      return EncodeAnswer(store->buffers(), *archive, slices,
                          FormFor(*archive, encoding), encoding,
                          std::move(pieces));
    }));
  }
};

void EncodeOnDecodePool(const std::shared_ptr<PendingAnswer>& answer) {
  const absl::Status status = OrNoMemory("encode an answer", [&] {
    answer->store->decode_pool().Add([answer] { answer->Encode(); });
    return absl::OkStatus();
  });
  if (!status.ok()) {
    answer->done(status);
  }
}

void OnPieces(const std::shared_ptr<PendingAnswer>& answer,
              absl::StatusOr<std::vector<BlockPiece>> pieces,
              RangeRead::EndedOn thread) {
  if (!pieces.ok()) {
    answer->done(pieces.status());
    return;
  }
  answer->pieces = *std::move(pieces);
  if (thread == RangeRead::EndedOn::kStarter &&
      IsLongWork(answer->encoding, answer->pieces)) {
    EncodeOnDecodePool(answer);
  } else {
    answer->Encode();
  }
}

}  // namespace

v1::WireEncoding ChooseEncoding(
    const google::protobuf::RepeatedField<int>& accepted,
    const ServedArchive& archive) {
  const bool takes_stored =
      !archive.archive->info().has_recipes ||
      std::ranges::find(accepted,
                        static_cast<int>(v1::WIRE_ENCODING_STORED_RECIPES)) !=
          accepted.end();
  for (const int encoding : accepted) {
    if (encoding == v1::WIRE_ENCODING_IDENTITY ||
        (encoding == v1::WIRE_ENCODING_STORED && takes_stored) ||
        (encoding == v1::WIRE_ENCODING_FSST && archive.wire_table != nullptr)) {
      return static_cast<v1::WireEncoding>(encoding);
    }
  }
  return v1::WIRE_ENCODING_IDENTITY;
}

bool AnswersAreBlocks(const ServedArchive& archive, v1::WireEncoding encoding) {
  return !archive.archive->has_layout() &&
         archive.archive->info().codec.partition_size_bytes == 0 &&
         (encoding == v1::WIRE_ENCODING_STORED ||
          encoding == v1::WIRE_ENCODING_IDENTITY);
}

uint64_t CopiedBytesMax(const ServedArchive& archive,
                        const std::vector<BlockSlice>& slices,
                        v1::WireEncoding encoding) {
  uint64_t size_bytes = 0;
  for (const BlockSlice& slice : slices) {
    // Of a stored block the whole payload is sent, which is less than this by
    // a part of its frame.
    const uint64_t piece_bytes =
        encoding == v1::WIRE_ENCODING_STORED
            ? BlockMemoryBytes(archive, slice.block, encoding)
            : slice.size_bytes;
    if (piece_bytes <= kCopiedPieceSizeBytesMax + kFrameOverheadSizeBytes) {
      size_bytes += piece_bytes;
    }
  }
  return size_bytes;
}

uint64_t CopiedBytesMax(const ServedArchive& archive, uint64_t size_bytes) {
  const ArchiveInfo& info = archive.archive->info();
  const uint64_t copied_bytes =
      std::min<uint64_t>(info.block_size_bytes_max, kCopiedPieceSizeBytesMax);
  const uint64_t slice_count = std::min(
      size_bytes, (size_bytes / (uint64_t{1} << 20) + 1 + info.segment_count) *
                      info.slices_per_mib_max);
  // One block more at either end, as in AnswerMemoryBytesMax().
  return std::min(slice_count * copied_bytes, size_bytes + 2 * copied_bytes) +
         slice_count * kFrameOverheadSizeBytes;
}

uint64_t BlockMemoryBytes(const ServedArchive& archive, BlockAddress block,
                          v1::WireEncoding encoding) {
  return FormFor(archive, encoding) == BlockForm::kStored
             ? StoredBlockSizeBytes(*archive.archive, block)
             : archive.archive->BlockSizeBytes(block);
}

uint64_t AnswerMemoryBytes(const ServedArchive& archive,
                           const std::vector<BlockSlice>& slices,
                           v1::WireEncoding encoding) {
  encoding = EncodingOf(archive, slices, encoding);
  uint64_t size_bytes = OutputBytesMax(archive, SizeOf(slices), encoding);
  size_bytes += SliceBytes(archive, slices.size());
  const BlockForm form = FormFor(archive, encoding);
  absl::btree_set<std::pair<BlockAddress, uint64_t>> counted;
  for (const BlockSlice& slice : slices) {
    const uint64_t block_bytes =
        BlockMemoryBytes(archive, slice.block, encoding);
    const TextRange decoded =
        form == BlockForm::kStored
            ? TextRange{.offset = 0, .size = block_bytes}
            : archive.archive->codec().DecodedRange(
                  block_bytes,
                  {.offset = slice.offset_in_block, .size = slice.size_bytes});
    if (!archive.archive->has_layout() ||
        counted.insert({slice.block, decoded.offset}).second) {
      size_bytes += decoded.size;
    }
  }
  return size_bytes;
}

uint64_t AnswerMemoryBytesMax(const ServedArchive& archive, uint64_t size_bytes,
                              v1::WireEncoding encoding) {
  // A range pins its blocks: its own length and at most one block more at
  // either end.
  return size_bytes +
         2 * uint64_t{archive.archive->info().block_size_bytes_max} +
         OutputBytesMax(archive, size_bytes, encoding);
}

uint64_t BlockAnswerMemoryBytes(const ServedArchive& archive,
                                v1::WireEncoding encoding) {
  const uint64_t block_bytes = archive.archive->info().block_size_bytes_max;
  return block_bytes + kFrameOverheadSizeBytes + SliceBytes(archive, 1) +
         OutputBytesMax(archive, block_bytes, encoding);
}

std::shared_ptr<RangeRead> StartAnswer(
    BlockStore& store, const std::shared_ptr<const ServedArchive>& archive,
    std::vector<BlockSlice> slices, v1::WireEncoding encoding,
    const Requester& requester, AnswerDone done, FetchBundle* bundle) {
  encoding = EncodingOf(*archive, slices, encoding);
  const BlockForm form = FormFor(*archive, encoding);
  std::shared_ptr<RangeRead> read;
  // With a cached short answer there is no more than its outcome: of such an
  // answer each allocation is a part that counts.
  std::optional<absl::StatusOr<Answer>> outcome;
  std::shared_ptr<PendingAnswer> pending;
  const absl::Status status = OrNoMemory("begin an answer", [&] {
    slices = SplitAtParts(*archive, std::move(slices), form);
    std::vector<BlockPiece> found;
    const bool all_found = RangeRead::FindCached(store, *archive, slices, form,
                                                 requester.fetch_class, found);
    if (all_found && !IsLongWork(encoding, found)) {
      outcome = EncodeAnswer(store.buffers(), *archive, slices, form, encoding,
                             std::move(found));
      return absl::OkStatus();
    }
    pending = std::make_shared<PendingAnswer>();
    // At once: whichever has it is called if the rest fails.
    pending->done = std::move(done);
    pending->store = &store;
    pending->archive = archive;
    pending->slices = slices;
    pending->encoding = encoding;
    if (all_found) {
      pending->pieces = std::move(found);
      EncodeOnDecodePool(pending);
      return absl::OkStatus();
    }
    read = RangeRead::StartMissing(
        store, archive, std::move(slices), form, requester, std::move(found),
        [pending](absl::StatusOr<std::vector<BlockPiece>> pieces,
                  RangeRead::EndedOn thread) {
          OnPieces(pending, std::move(pieces), thread);
        },
        bundle);
    return absl::OkStatus();
  });
  if (outcome.has_value()) {
    done(*std::move(outcome));
  } else if (!status.ok()) {
    (pending == nullptr ? done : pending->done)(status);
  }
  return read;
}

}  // namespace quire
