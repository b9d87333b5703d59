// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/answer_read.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "codecs/base/status_macros.h"
#include "server/archive/block_frame.h"
#include "server/service/wire_encoder.h"

namespace quire {
namespace {

// Text that is encoded or decoded on a thread of gRPC's: a tenth of a
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
      return UsesStoredTable(archive) ? BlockForm::kStored : BlockForm::kPacked;
    default:
      return BlockForm::kText;
  }
}

uint64_t SizeOf(const std::vector<BlockSlice>& slices) {
  uint64_t size_bytes = 0;
  for (const BlockSlice& slice : slices) {
    size_bytes += slice.size_bytes;
  }
  return size_bytes;
}

// What an answer takes beside its blocks.
uint64_t OutputBytesMax(const ServedArchive& archive, uint64_t size_bytes,
                        v1::WireEncoding encoding) {
  if (encoding == v1::WIRE_ENCODING_FSST) {
    // Blocks with a table of their own are decoded first.
    const uint64_t decoded_bytes = UsesStoredTable(archive) ? size_bytes : 0;
    return FsstBufferSizeMax(size_bytes) + decoded_bytes;
  }
  const bool is_unpacked =
      encoding != v1::WIRE_ENCODING_STORED && archive.decoder->packs();
  return is_unpacked ? size_bytes : 0;
}

// One answer between its blocks and its bytes.
struct Making {
  BlockStore* store;
  std::shared_ptr<const ServedArchive> archive;
  std::vector<BlockSlice> slices;
  v1::WireEncoding encoding;
  BlockForm form;
  AnswerDone done;
  std::thread::id caller;
};

bool IsLongWork(const Making& making, const std::vector<BlockPiece>& pieces) {
  if (making.encoding == v1::WIRE_ENCODING_STORED) {
    return false;
  }
  uint64_t work_bytes = 0;
  for (const BlockPiece& piece : pieces) {
    // Codes are copied as they are, text is.
    const bool is_copied =
        piece.block->is_packed() == (making.encoding == v1::WIRE_ENCODING_FSST);
    work_bytes += is_copied ? 0 : piece.size_bytes;
  }
  return work_bytes > kInlineWorkBytesMax;
}

Answer TextAnswer(std::vector<BlockPiece> pieces) {
  return {.encoding = v1::WIRE_ENCODING_IDENTITY,
          .pieces = std::move(pieces),
          .details = std::nullopt};
}

void Finish(const std::shared_ptr<Making>& making,
            absl::StatusOr<std::vector<BlockPiece>> pieces) {
  if (!pieces.ok()) {
    making->done(pieces.status());
    return;
  }
  if (std::this_thread::get_id() == making->caller &&
      IsLongWork(*making, *pieces)) {
    making->store->Run([making, pieces = *std::move(pieces)]() mutable {
      making->caller = {};
      Finish(making, std::move(pieces));
    });
    return;
  }
  making->done(EncodeAnswer(*making->store, *making->archive, making->slices,
                            making->form, making->encoding,
                            *std::move(pieces)));
}

}  // namespace

uint64_t Answer::data_size_bytes() const {
  uint64_t size_bytes = 0;
  for (const BlockPiece& piece : pieces) {
    size_bytes += piece.size_bytes;
  }
  return size_bytes;
}

v1::WireEncoding ChooseEncoding(
    const google::protobuf::RepeatedField<int>& accepted,
    const ServedArchive& archive) {
  for (const int encoding : accepted) {
    if (encoding == v1::WIRE_ENCODING_IDENTITY ||
        encoding == v1::WIRE_ENCODING_STORED ||
        (encoding == v1::WIRE_ENCODING_FSST && archive.wire_table != nullptr)) {
      return static_cast<v1::WireEncoding>(encoding);
    }
  }
  return v1::WIRE_ENCODING_IDENTITY;
}

bool AnswersAreBlocks(const ServedArchive& archive, v1::WireEncoding encoding) {
  return encoding == v1::WIRE_ENCODING_STORED ||
         (encoding == v1::WIRE_ENCODING_IDENTITY && !archive.decoder->packs());
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
  uint64_t size_bytes = OutputBytesMax(archive, SizeOf(slices), encoding);
  for (const BlockSlice& slice : slices) {
    size_bytes += BlockMemoryBytes(archive, slice.block, encoding);
  }
  return size_bytes;
}

uint64_t AnswerMemoryBytesMax(const ServedArchive& archive, uint64_t size_bytes,
                              v1::WireEncoding encoding) {
  // A range pins its blocks: its own length and at most one block more at
  // either end.
  return size_bytes + 2 * uint64_t{archive.archive->info().block_size_bytes} +
         OutputBytesMax(archive, size_bytes, encoding);
}

uint64_t BlockAnswerMemoryBytes(const ServedArchive& archive,
                                v1::WireEncoding encoding) {
  const uint64_t block_bytes = archive.archive->info().block_size_bytes;
  return block_bytes + kFrameOverheadSizeBytes +
         OutputBytesMax(archive, block_bytes, encoding);
}

std::shared_ptr<RangeRead> StartAnswer(
    BlockStore& store, const std::shared_ptr<const ServedArchive>& archive,
    std::vector<BlockSlice> slices, v1::WireEncoding encoding, Asker asker,
    AnswerDone done, FetchBundle* bundle) {
  if (encoding == v1::WIRE_ENCODING_IDENTITY && !archive->decoder->packs()) {
    // Without a function around `done` where all is cached: of a short answer
    // each allocation is a part that counts.
    std::vector<BlockPiece> found;
    if (RangeRead::FindCached(store, *archive, slices, BlockForm::kText,
                              asker.fetch_class, found)) {
      done(TextAnswer(std::move(found)));
      return nullptr;
    }
    return RangeRead::StartMissing(
        store, archive, std::move(slices), BlockForm::kText, asker,
        std::move(found),
        [done =
             std::move(done)](absl::StatusOr<std::vector<BlockPiece>> pieces) {
          if (!pieces.ok()) {
            done(pieces.status());
            return;
          }
          done(TextAnswer(*std::move(pieces)));
        },
        bundle);
  }
  auto making = std::make_shared<Making>(
      Making{&store, archive, slices, encoding, FormFor(*archive, encoding),
             std::move(done), std::this_thread::get_id()});
  return RangeRead::Start(
      store, archive, std::move(slices), making->form, asker,
      [making](absl::StatusOr<std::vector<BlockPiece>> pieces) {
        Finish(making, std::move(pieces));
      },
      bundle);
}

}  // namespace quire
