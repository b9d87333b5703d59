// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/redaction/inflated_block.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Limit on the text of which the blocks are looked up at once.
constexpr uint64_t kPlannedSizeBytes = uint64_t{64} << 20;

}  // namespace

InflatedBlock::InflatedBlock(const Archive& archive)
    : archive_(archive), scratch_(archive.codec().NewScratch()) {}

absl::Status InflatedBlock::Read(BlockAddress block) {
  if (block_ == block) {
    return absl::OkStatus();
  }
  block_.reset();
  raw_.reset();
  is_searched_ = false;
  QUIRE_ASSIGN_OR_RETURN(payload_, archive_.ReadPayload(block, frame_));
  const absl::Status decoded = archive_.codec().DecodeInflated(
      payload_, archive_.BlockSizeBytes(block), inflated_, recipe_, *scratch_);
  if (!decoded.ok()) {
    return absl::Status(
        decoded.code(),
        absl::StrCat(archive_.SegmentPath(block.segment_index), ": block ",
                     block.block_index, ": ", decoded.message()));
  }
  block_ = block;
  return absl::OkStatus();
}

absl::StatusOr<ByteView> InflatedBlock::Raw() {
  if (recipe_.members.empty()) {
    return ByteView(inflated_);
  }
  if (!raw_.has_value()) {
    std::vector<uint8_t> raw(archive_.BlockSizeBytes(*block_));
    QUIRE_RETURN_IF_ERROR(archive_.ReadBlock(*block_, raw, *scratch_));
    raw_ = std::move(raw);
  }
  return ByteView(*raw_);
}

absl::Status InflatedBlock::SearchMembers() {
  if (std::exchange(is_searched_, true) || !recipe_.members.empty()) {
    return absl::OkStatus();
  }
  if (!inflater_.has_value()) {
    inflater_.emplace(kInflatedLargeSizeMax);
  }
  if (inflater_->Inflate(inflated_)) {
    raw_ = std::exchange(inflated_,
                         {inflater_->text().begin(), inflater_->text().end()});
    recipe_ = inflater_->recipe();
  }
  return absl::OkStatus();
}

void InflatedBlock::AddInflated(uint64_t begin, uint64_t end,
                                PartialMembers partial, TextSink& sink) const {
  const ByteView text(inflated_);
  // Offset of the text after the last member, in the block and inflated.
  uint64_t at = 0;
  uint64_t text_at = 0;
  const auto add_between = [&](uint64_t next) {
    const uint64_t from = std::max(at, begin);
    const uint64_t to = std::min(next, end);
    if (from < to) {
      sink.Add(text.subspan(text_at + (from - at), to - from));
    }
  };
  for (const InflatedMember& member : recipe_.members) {
    add_between(member.offset);
    at = member.offset + member.recipe.member_size;
    text_at = member.text_offset + member.recipe.text_size;
    if (at <= begin || member.offset >= end) {
      continue;
    }
    if (partial == PartialMembers::kNone &&
        (member.offset < begin || at > end)) {
      sink.Break();
      continue;
    }
    sink.Add(text.subspan(member.text_offset, member.recipe.text_size));
  }
  add_between(archive_.BlockSizeBytes(*block_));
}

bool HasInflatedText(const Archive& archive) {
  return archive.info().has_recipes || !archive.info().found_members.empty();
}

namespace {

// Adds one range of the logical space, as it is or with members inflated.
absl::Status AddRange(const Archive& archive, TextInterval range,
                      std::optional<PartialMembers> inflated,
                      const OnTextRead& on_read, InflatedBlock& block,
                      TextSink& sink) {
  while (range.begin < range.end) {
    const uint64_t size_bytes =
        std::min(range.end - range.begin, kPlannedSizeBytes);
    QUIRE_ASSIGN_OR_RETURN(const std::vector<BlockSlice> slices,
                           archive.Plan({{range.begin}, size_bytes}));
    for (const BlockSlice& slice : slices) {
      QUIRE_RETURN_IF_ERROR(block.Read(slice.block));
      const uint64_t end = slice.offset_in_block + slice.size_bytes;
      if (inflated.has_value()) {
        if (*inflated == PartialMembers::kWhole) {
          QUIRE_RETURN_IF_ERROR(block.SearchMembers());
        }
        block.AddInflated(slice.offset_in_block, end, *inflated, sink);
      } else {
        QUIRE_ASSIGN_OR_RETURN(const ByteView raw, block.Raw());
        sink.Add(raw.subspan(slice.offset_in_block, slice.size_bytes));
      }
      QUIRE_RETURN_IF_ERROR(on_read(slice.size_bytes));
    }
    range.begin += size_bytes;
  }
  sink.Break();
  return absl::OkStatus();
}

}  // namespace

absl::Status AddLogicalText(const Archive& archive,
                            std::span<const TextInterval> ranges,
                            PartialMembers partial, const OnTextRead& on_read,
                            TextSink& sink) {
  InflatedBlock block(archive);
  const bool is_inflated = HasInflatedText(archive);
  for (const TextInterval& range : ranges) {
    QUIRE_RETURN_IF_ERROR(
        AddRange(archive, range, std::nullopt, on_read, block, sink));
    if (is_inflated) {
      QUIRE_RETURN_IF_ERROR(AddRange(
          archive, range, partial, [](uint64_t) { return absl::OkStatus(); },
          block, sink));
    }
  }
  return absl::OkStatus();
}

absl::Status AddKeptText(const Archive& archive, uint32_t segment_index,
                         const SegmentRedaction& plan, bool with_raw,
                         const OnTextRead& on_read, TextSink& sink) {
  InflatedBlock block(archive);
  for (const bool is_raw : {false, true}) {
    if (is_raw && !with_raw) {
      continue;
    }
    uint64_t begin = 0;
    for (uint64_t i = 0; i < archive.SegmentBlockCount(segment_index); ++i) {
      const BlockAddress address{segment_index, i};
      const uint64_t end = begin + archive.BlockSizeBytes(address);
      QUIRE_RETURN_IF_ERROR(block.Read(address));
      ByteView raw;
      if (is_raw) {
        QUIRE_ASSIGN_OR_RETURN(raw, block.Raw());
      }
      plan.VisitKept(begin, end, [&](TextInterval part, bool continues) {
        if (!continues) {
          sink.Break();
        }
        if (is_raw) {
          sink.Add(raw.subspan(part.begin - begin, part.end - part.begin));
        } else {
          block.AddInflated(part.begin - begin, part.end - begin,
                            PartialMembers::kNone, sink);
        }
      });
      QUIRE_RETURN_IF_ERROR(on_read(end - begin));
      begin = end;
    }
    sink.Break();
  }
  return absl::OkStatus();
}

}  // namespace quire
