// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/redaction/inflated_block.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/mutex.h"
#include "codecs/base/status_macros.h"
#include "server/archive/format/work_in_threads.h"

namespace quire {
namespace {

// Limit on the text of which the blocks are looked up at once.
constexpr uint64_t kPlannedSizeBytes = uint64_t{64} << 20;

// Blocks that a thread takes at a time; one more is read for the windows at
// their end.
constexpr uint64_t kPartBlockCount = 64;

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

absl::Status ForEachPart(
    const Archive& archive, uint32_t segment_index, uint32_t thread_count,
    const OnTextRead& on_read,
    absl::FunctionRef<absl::Status(size_t thread, const StoredPart& part,
                                   const OnTextRead& on_part_read)>
        work) {
  const uint64_t block_count = archive.SegmentBlockCount(segment_index);
  std::vector<StoredPart> parts;
  uint64_t begin = 0;
  for (uint64_t i = 0; i < block_count; ++i) {
    if (i % kPartBlockCount == 0) {
      parts.push_back({i, std::min(i + kPartBlockCount, block_count), begin});
    }
    begin += archive.BlockSizeBytes({segment_index, i});
  }
  std::atomic<size_t> next_thread = 0;
  std::atomic<uint64_t> read_bytes = 0;
  std::atomic<bool> has_failed = false;
  Mutex mutex;
  absl::Status first_error;
  const std::thread::id caller = std::this_thread::get_id();
  const OnTextRead on_part_read = [&](uint64_t size_bytes) {
    read_bytes += size_bytes;
    if (has_failed) {
      return absl::CancelledError("another thread failed");
    }
    return std::this_thread::get_id() == caller
               ? on_read(read_bytes.exchange(0))
               : absl::OkStatus();
  };
  WorkInThreads(thread_count, parts.size(), [&](const NextNumber& next) {
    const size_t thread = next_thread++;
    while (const std::optional<uint64_t> i = next()) {
      const absl::Status status = work(thread, parts[*i], on_part_read);
      if (!status.ok()) {
        MutexLock lock(&mutex);
        if (!has_failed.exchange(true)) {
          first_error = status;
        }
        return;
      }
    }
  });
  QUIRE_RETURN_IF_ERROR(first_error);
  return on_read(read_bytes.exchange(0));
}

namespace {

// The windows that begin in a part end in the text after it.
class PartEnd final : public TextSink {
 public:
  explicit PartEnd(TextSink& sink) : sink_(sink) {}

  void Add(ByteView piece) override {
    const size_t size = std::min(piece.size(), left_);
    left_ -= size;
    sink_.Add(piece.first(size));
  }

  void Break() override { left_ = 0; }

  bool is_complete() const { return left_ == 0; }

 private:
  TextSink& sink_;
  size_t left_ = kWindowSizeBytes - 1;
};

// Adds the text of a part, either as it is or with its members inflated.
absl::Status AddPart(const Archive& archive, uint32_t segment_index,
                     const StoredPart& part, const SegmentRedaction& plan,
                     bool is_raw, const OnTextRead& on_read,
                     InflatedBlock& block, TextSink& sink) {
  PartEnd part_end(sink);
  uint64_t begin = part.begin;
  for (uint64_t i = part.first_block;
       i < part.end_block || (i < archive.SegmentBlockCount(segment_index) &&
                              !part_end.is_complete());
       ++i) {
    TextSink& to = i < part.end_block ? sink : part_end;
    const BlockAddress address{segment_index, i};
    const uint64_t end = begin + archive.BlockSizeBytes(address);
    QUIRE_RETURN_IF_ERROR(block.Read(address));
    ByteView raw;
    if (is_raw) {
      QUIRE_ASSIGN_OR_RETURN(raw, block.Raw());
    }
    uint64_t kept_end = begin;
    plan.VisitKept(begin, end, [&](TextInterval kept, bool continues) {
      if (!continues) {
        to.Break();
      }
      if (is_raw) {
        to.Add(raw.subspan(kept.begin - begin, kept.end - kept.begin));
      } else {
        block.AddInflated(kept.begin - begin, kept.end - begin,
                          PartialMembers::kNone, to);
      }
      kept_end = kept.end;
    });
    if (kept_end < end) {
      to.Break();
    }
    if (i < part.end_block) {
      QUIRE_RETURN_IF_ERROR(on_read(end - begin));
    }
    begin = end;
  }
  sink.Break();
  return absl::OkStatus();
}

}  // namespace

absl::Status AddKeptText(const Archive& archive, uint32_t segment_index,
                         const SegmentRedaction& plan, bool with_raw,
                         const OnTextRead& on_read,
                         std::span<TextSink* const> sinks) {
  std::deque<InflatedBlock> blocks;
  while (blocks.size() < sinks.size()) {
    blocks.emplace_back(archive);
  }
  return ForEachPart(archive, segment_index,
                     static_cast<uint32_t>(sinks.size()), on_read,
                     [&](size_t thread, const StoredPart& part,
                         const OnTextRead& on_part_read) -> absl::Status {
                       for (const bool is_raw : {false, true}) {
                         if (!is_raw || with_raw) {
                           QUIRE_RETURN_IF_ERROR(AddPart(
                               archive, segment_index, part, plan, is_raw,
                               on_part_read, blocks[thread], *sinks[thread]));
                         }
                       }
                       return absl::OkStatus();
                     });
}

}  // namespace quire
