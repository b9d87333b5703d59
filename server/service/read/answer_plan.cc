// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/read/answer_plan.h"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/container/btree_map.h"

#include "codecs/payload/partition_table.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/block_frame.h"
#include "server/service/read/answer.h"
#include "server/service/read/answer_bytes.h"
#include "server/service/read/wire_encoder.h"
#include "server/storage/fetch/buffer_pool.h"

namespace quire {
namespace {

// Memory of a slice while it is planned, fetched and sent, without its block.
// Counted where a block may have many slices.
constexpr uint64_t kSliceBytes = 512;

bool UsesStoredTable(const ServedArchive& archive) {
  return FindCodec(archive.archive->info().codec.id)->needs_symbol_table;
}

bool AreInARow(const Archive& archive, std::span<const BlockSlice> slices) {
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

// Upper bound on the memory of `size_bytes` of encoded text, without the
// blocks.
uint64_t EncodedBytesMax(const ServedArchive& archive, uint64_t size_bytes,
                         v1::WireEncoding encoding) {
  if (encoding != v1::WIRE_ENCODING_FSST) {
    return 0;
  }
  // Blocks with their own table are decoded first.
  return FsstBufferSizeMax(size_bytes) +
         (UsesStoredTable(archive) ? size_bytes : 0);
}

auto PartOf(const PlannedSlice& slice) {
  return std::tuple(slice.block, slice.part);
}

// Appends a slice, divided at the ends of its parts.
void AppendSlices(const ServedArchive& archive, const BlockSlice& slice,
                  AnswerPlan& plan) {
  const uint32_t block_size = archive.archive->BlockSizeBytes(slice.block);
  if (plan.form == BlockForm::kStored) {
    plan.slices.push_back({.block = slice.block,
                           .offset = slice.offset_in_block,
                           .size_bytes = slice.size_bytes,
                           .part_size_bytes = block_size,
                           .fetched_size_bytes = StoredBlockSizeBytes(
                               *archive.archive, slice.block)});
    return;
  }
  const auto part_size = static_cast<uint32_t>(FittedPartitionSize(
      block_size, archive.archive->codec().partition_size_bytes()));
  const uint32_t end = slice.offset_in_block + slice.size_bytes;
  for (uint32_t begin = slice.offset_in_block; begin < end;) {
    const uint32_t part = begin / part_size;
    const uint32_t part_begin = part * part_size;
    const uint32_t size = std::min(part_size, block_size - part_begin);
    const uint32_t piece_end = std::min(end, part_begin + size);
    plan.slices.push_back({.block = slice.block,
                           .part = part,
                           .offset = begin - part_begin,
                           .size_bytes = piece_end - begin,
                           .part_size_bytes = size,
                           .fetched_size_bytes = size});
    begin = piece_end;
  }
}

// Chains the slices of each part, in order.
void LinkRepeats(std::vector<PlannedSlice>& slices) {
  const bool is_ascending =
      std::adjacent_find(slices.begin(), slices.end(),
                         [](const PlannedSlice& a, const PlannedSlice& b) {
                           return PartOf(a) >= PartOf(b);
                         }) == slices.end();
  if (is_ascending) {
    return;
  }
  absl::btree_map<std::tuple<BlockAddress, uint32_t>, uint32_t> last;
  for (uint32_t i = 0; i < slices.size(); ++i) {
    const auto [seen, is_first] = last.try_emplace(PartOf(slices[i]), i);
    if (!is_first) {
      slices[i].is_repeat = true;
      slices[seen->second].next_repeat = i;
      seen->second = i;
    }
  }
}

// Quantities that determine the memory of an answer: exact in a plan, otherwise
// upper bounds.
struct AnswerShape {
  uint64_t size_bytes = 0;
  uint64_t slice_count = 0;
  // Text copied out of blocks, and the largest of these blocks.
  uint64_t copied_text_bytes = 0;
  uint64_t copied_from_bytes = 0;
  uint64_t zeros_count = 0;
};

// Memory of an answer without the blocks that it references.
uint64_t OwnBytes(const ServedArchive& archive, v1::WireEncoding encoding,
                  bool is_in_a_row, const AnswerShape& shape) {
  if (is_in_a_row) {
    return EncodedBytesMax(archive, shape.size_bytes, encoding);
  }
  // The block being copied from comes on top.
  return BufferPool::MemorySizeBytes(shape.copied_text_bytes) +
         shape.copied_from_bytes + shape.slice_count * kSliceBytes +
         shape.zeros_count * sizeof(AnswerRange);
}

// Marks slices to be copied that are a small part of the memory held for them;
// with zeros, all.
void ChooseCopies(AnswerPlan& plan, AnswerShape& shape) {
  for (PlannedSlice& slice : plan.slices) {
    if (2 * slice.size_bytes < slice.part_size_bytes || !plan.zeros.empty()) {
      slice.is_copied = true;
      shape.copied_text_bytes += slice.size_bytes;
      shape.copied_from_bytes =
          std::max<uint64_t>(shape.copied_from_bytes, slice.fetched_size_bytes);
    }
  }
  shape.zeros_count = plan.zeros.size();
}

void CountBlocks(AnswerPlan& plan) {
  for (const PlannedSlice& first : plan.slices) {
    if (first.is_repeat) {
      continue;
    }
    const PlannedSlice* slice = &first;
    while (slice->is_copied && slice->next_repeat != 0) {
      slice = &plan.slices[slice->next_repeat];
    }
    plan.block_bytes += slice->is_copied ? 0 : first.fetched_size_bytes;
  }
}

uint64_t SerialisedBytesMax(const AnswerPlan& plan) {
  uint64_t size_bytes = 0;
  for (const PlannedSlice& slice : plan.slices) {
    // A stored block is sent with its whole payload: the block without a part
    // of its frame.
    const uint64_t piece_bytes = plan.form == BlockForm::kStored
                                     ? slice.fetched_size_bytes
                                     : slice.size_bytes;
    size_bytes +=
        piece_bytes <= kCopiedPieceSizeBytesMax + kFrameOverheadSizeBytes
            ? piece_bytes
            : 0;
  }
  return size_bytes;
}

AnswerPlan PlanWithZeros(const ServedArchive& archive,
                         std::span<const BlockSlice> slices,
                         v1::WireEncoding encoding,
                         std::vector<AnswerRange> zeros) {
  // Encoded answers state the sizes cut off at their two ends only.
  const bool is_in_a_row = zeros.empty() && AreInARow(*archive.archive, slices);
  AnswerPlan plan{
      .encoding = is_in_a_row ? encoding : v1::WIRE_ENCODING_IDENTITY,
      .zeros = std::move(zeros)};
  // Codes of the archive's own table are sent as stored.
  const bool is_stored =
      plan.encoding == v1::WIRE_ENCODING_STORED ||
      (plan.encoding == v1::WIRE_ENCODING_FSST && UsesStoredTable(archive));
  plan.form = is_stored ? BlockForm::kStored : BlockForm::kText;
  plan.slices.reserve(slices.size());
  for (const BlockSlice& slice : slices) {
    plan.size_bytes += slice.size_bytes;
    AppendSlices(archive, slice, plan);
  }
  AnswerShape shape{.size_bytes = plan.size_bytes,
                    .slice_count = plan.slices.size()};
  if (!is_in_a_row) {
    LinkRepeats(plan.slices);
    ChooseCopies(plan, shape);
  }
  plan.copied_text_bytes = shape.copied_text_bytes;
  plan.own_bytes = OwnBytes(archive, plan.encoding, is_in_a_row, shape);
  CountBlocks(plan);
  plan.is_shareable = is_in_a_row && plan.encoding != v1::WIRE_ENCODING_FSST &&
                      archive.archive->codec().partition_size_bytes() == 0;
  plan.serialised_bytes = plan.is_shareable ? SerialisedBytesMax(plan) : 0;
  return plan;
}

// Plans the answer of slices that follow each other in the text from `offset`.
AnswerPlan PlanText(const ServedContents& contents,
                    std::span<const BlockSlice> slices, LogicalOffset offset,
                    v1::WireEncoding encoding) {
  const WithdrawnDocuments* const withdrawn =
      contents.withdrawal.documents.get();
  if (withdrawn == nullptr) {
    return PlanWithZeros(*contents.archive, slices, encoding, {});
  }
  uint64_t size_bytes = 0;
  for (const BlockSlice& slice : slices) {
    size_bytes += slice.size_bytes;
  }
  return PlanWithZeros(*contents.archive, slices, v1::WIRE_ENCODING_IDENTITY,
                       withdrawn->ZerosIn({offset, size_bytes}));
}

}  // namespace

v1::WireEncoding ChooseEncoding(
    const google::protobuf::RepeatedField<int>& accepted,
    const ServedContents& contents) {
  if (contents.withdrawal.has_documents()) {
    return v1::WIRE_ENCODING_IDENTITY;
  }
  const ServedArchive& archive = *contents.archive;
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

AnswerPlan PlanAnswer(const ServedContents& contents, LogicalRange range,
                      v1::WireEncoding encoding) {
  return PlanText(contents, contents.view.archive->Plan(range).value(),
                  range.offset, encoding);
}

AnswerPlan PlanChunk(const ServedContents& contents, LogicalRange range,
                     bool is_last, v1::WireEncoding encoding,
                     uint64_t memory_bytes_max) {
  const Archive& archive = *contents.view.archive;
  const std::vector<BlockSlice> all = archive.Plan(range).value();
  std::span<const BlockSlice> slices = all;
  if (slices.size() > 1 && !is_last &&
      slices.back().size_bytes < archive.BlockSizeBytes(slices.back().block)) {
    slices = slices.first(slices.size() - 1);
  }
  AnswerPlan plan = PlanText(contents, slices, range.offset, encoding);
  while (slices.size() > 1 && plan.memory_bytes() > memory_bytes_max) {
    // Halve long lists: a layout may give many slices.
    slices = slices.first(slices.size() > 64 ? slices.size() / 2
                                             : slices.size() - 1);
    plan = PlanText(contents, slices, range.offset, encoding);
  }
  return plan;
}

AnswerPlan PlanSlices(const ServedArchive& archive,
                      std::span<const BlockSlice> slices,
                      v1::WireEncoding encoding) {
  return PlanWithZeros(archive, slices, encoding, {});
}

uint64_t AnswerBytesMax(const ServedContents& contents, uint64_t size_bytes,
                        v1::WireEncoding encoding) {
  const ServedArchive& archive = *contents.archive;
  const ArchiveInfo& info = archive.archive->info();
  const uint64_t block_bytes = info.block_size_bytes_max;
  const uint64_t slice_count = std::min(
      size_bytes, (size_bytes / (uint64_t{1} << 20) + 1 + info.segment_count) *
                      info.slices_per_mib_max);
  // The blocks at both ends are referenced whole.
  const uint64_t in_a_row_bytes =
      size_bytes + 2 * block_bytes +
      OwnBytes(archive, encoding, /*is_in_a_row=*/true,
               {.size_bytes = size_bytes}) +
      std::min<uint64_t>(slice_count * kCopiedPieceSizeBytesMax,
                         size_bytes + 2 * uint64_t{kCopiedPieceSizeBytesMax}) +
      slice_count * kFrameOverheadSizeBytes;
  const WithdrawnDocuments* const withdrawn =
      contents.withdrawal.documents.get();
  if (!archive.archive->has_layout() && withdrawn == nullptr) {
    return in_a_row_bytes;
  }
  // Slices that lie apart hold at most twice their length, in blocks or copied;
  // for the copies, a buffer is rounded up, by less than a block.
  const uint32_t part_size = archive.archive->codec().partition_size_bytes();
  const uint64_t apart_bytes =
      block_bytes +
      OwnBytes(archive, encoding, /*is_in_a_row=*/false,
               {.size_bytes = size_bytes,
                .slice_count =
                    slice_count +
                    (part_size == 0 ? 0 : slice_count + size_bytes / part_size),
                .copied_text_bytes = 2 * size_bytes,
                .copied_from_bytes = block_bytes,
                .zeros_count = withdrawn == nullptr
                                   ? 0
                                   : std::min<uint64_t>(withdrawn->run_count(),
                                                        size_bytes)});
  return std::max(in_a_row_bytes, apart_bytes);
}

uint64_t BlockAnswerBytesMax(const ServedArchive& archive,
                             v1::WireEncoding encoding) {
  const uint64_t block_bytes = archive.archive->info().block_size_bytes_max;
  return block_bytes + kFrameOverheadSizeBytes +
         EncodedBytesMax(archive, block_bytes, encoding);
}

}  // namespace quire
