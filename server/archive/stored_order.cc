// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/stored_order.h"

#include <algorithm>
#include <compare>
#include <limits>

#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/endian.h"
#include "server/archive/index/block_spans.h"
#include "server/archive/index/segment_layout.h"

namespace quire {
namespace {

uint64_t StoredStart(const SegmentLayout& layout, uint64_t run) {
  return layout.PieceOf(run, layout.StartOf(run)).stored_offset;
}

struct RunStart {
  uint64_t stored_offset;
  uint32_t run;

  auto operator<=>(const RunStart&) const = default;
};

// Number of segments that have text of the view.
uint32_t SegmentCountOf(const ArchiveView& view) {
  uint32_t count = view.archive->info().segment_count;
  while (count > 0 &&
         view.archive->SegmentStart(count - 1) >= view.size_bytes) {
    --count;
  }
  return count;
}

uint64_t RunCountMax(const Archive& archive) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < archive.info().segment_count; ++i) {
    most = std::max(most, archive.SegmentLayoutOf(i).run_count());
  }
  return most;
}

}  // namespace

bool StoredOrder::IsThere(const ArchiveView& view) {
  const Archive& archive = *view.archive;
  if (!archive.has_layout()) {
    return false;
  }
  const uint32_t count = SegmentCountOf(view);
  bool has_layout = false;
  for (uint32_t i = 0; i < count; ++i) {
    has_layout |= archive.SegmentLayoutOf(i).run_count() > 1;
  }
  const bool ends_with_segment =
      count == archive.info().segment_count
          ? view.size_bytes == archive.info().size_bytes
          : view.size_bytes == archive.SegmentStart(count);
  return has_layout && ends_with_segment &&
         RunCountMax(archive) < std::numeric_limits<uint32_t>::max();
}

uint64_t StoredOrder::SegmentsId(const ArchiveView& view) {
  const uint32_t count = SegmentCountOf(view);
  std::vector<uint8_t> numbers(count * sizeof(uint32_t));
  for (uint32_t i = 0; i < count; ++i) {
    StoreLittleEndian(view.archive->SegmentNumber(i),
                      numbers.data() + i * sizeof(uint32_t));
  }
  return Checksum64(numbers);
}

StoredOrder::StoredOrder(const ArchiveView& view)
    : archive_(view.archive), segment_count_(SegmentCountOf(view)) {}

uint64_t StoredOrder::MemoryBytes(const Archive& archive) {
  return (2 * sizeof(uint32_t) + sizeof(RunStart)) * RunCountMax(archive);
}

uint64_t StoredOrder::EndOfRun(uint64_t run) const {
  const SegmentLayout& layout = archive_->SegmentLayoutOf(segment_);
  const auto piece = layout.PieceOf(run, layout.StartOf(run));
  return piece.stored_offset + piece.size_bytes;
}

void StoredOrder::SkipEmptySegments() {
  while (!at_end() && archive_->SegmentBlockCount(segment_) == 0) {
    ++segment_;
  }
}

void StoredOrder::LoadSegment() {
  if (is_loaded_) {
    return;
  }
  is_loaded_ = true;
  SkipEmptySegments();
  const SegmentLayout& layout = archive_->SegmentLayoutOf(segment_);
  // Cached, since a look-up takes longer than a comparison.
  std::vector<RunStart> starts;
  starts.reserve(layout.run_count());
  for (uint32_t run = 0; run < layout.run_count(); ++run) {
    // Those that have ended are not sorted for a scan that is resumed.
    if (EndOfRun(run) > start_) {
      starts.push_back({StoredStart(layout, run), run});
    }
  }
  std::ranges::sort(starts);
  runs_.resize(starts.size());
  std::ranges::transform(starts, runs_.begin(), &RunStart::run);
  next_ = 0;
  open_.clear();
  open_.reserve(runs_.size());
}

absl::Status StoredOrder::GoTo(Position position) {
  const auto no_block = [&] {
    return absl::OutOfRangeError(absl::StrCat(
        "no block begins at byte ", position.offset, " of the stored text"));
  };
  SkipEmptySegments();
  while (!at_end() && position.offset - segment_start_ >=
                          archive_->SegmentBlocks(segment_).size_bytes()) {
    segment_start_ += archive_->SegmentBlocks(segment_).size_bytes();
    ++segment_;
    SkipEmptySegments();
  }
  if (!at_end()) {
    const BlockSpans& blocks = archive_->SegmentBlocks(segment_);
    block_ = blocks.BlockAt(position.offset - segment_start_);
    start_ = blocks.StartOf(block_);
  }
  if (segment_start_ + start_ != position.offset) {
    return no_block();
  }
  places_given_ = position.places_given;
  if (!at_end() && places_given_ > 0) {
    LoadSegment();
    const uint64_t end = start_ + archive_->BlockSizeBytes({segment_, block_});
    StartRuns(end);
    std::vector<StoredPlace> next;
    AppendPlaces(end, 1, next);
    if (next.empty()) {
      return no_block();
    }
  }
  return absl::OkStatus();
}

void StoredOrder::StartRuns(uint64_t end) {
  const SegmentLayout& layout = archive_->SegmentLayoutOf(segment_);
  while (next_ < runs_.size() && StoredStart(layout, runs_[next_]) < end) {
    if (EndOfRun(runs_[next_]) > start_) {
      open_.push_back(runs_[next_]);
    }
    ++next_;
  }
}

bool StoredOrder::HasOpenMoreThan(size_t max, uint64_t end) const {
  return open_.size() > max &&
         StoredStart(archive_->SegmentLayoutOf(segment_), open_[max]) < end;
}

bool StoredOrder::AppendPlaces(uint64_t end, size_t max,
                               std::vector<StoredPlace>& places) {
  const SegmentLayout& layout = archive_->SegmentLayoutOf(segment_);
  const uint64_t logical_start = archive_->SegmentStart(segment_);
  // Each open run that begins before `end` has a place, in the same order:
  // place n belongs to run n.
  for (uint64_t i = places_given_; i < open_.size(); ++i) {
    ++work_;
    const uint64_t in_text = layout.StartOf(open_[i]);
    const auto piece = layout.PieceOf(open_[i], in_text);
    if (piece.stored_offset >= end) {
      return true;
    }
    if (places.size() == max) {
      return false;
    }
    const uint64_t from = std::max(piece.stored_offset, start_);
    const uint64_t to = std::min(piece.stored_offset + piece.size_bytes, end);
    places.push_back(
        {.offset = logical_start + in_text + (from - piece.stored_offset),
         .offset_in_text = static_cast<uint32_t>(from - start_),
         .size_bytes = static_cast<uint32_t>(to - from)});
  }
  return true;
}

StoredOrder::BlockRange StoredOrder::Peek(
    uint64_t size_bytes_max, size_t places_max,
    absl::FunctionRef<bool(const std::vector<BlockSlice>&)> fits) {
  LoadSegment();
  const uint64_t block_count = archive_->SegmentBlockCount(segment_);
  BlockRange range;
  // Finish a block that was returned in part first.
  uint64_t most = places_given_ > 0 ? block_ + 1 : block_count;
  for (uint64_t block = block_; block < most; ++block) {
    const uint32_t size = archive_->BlockSizeBytes({segment_, block});
    if (!range.blocks.empty() &&
        (range.size_bytes + size > size_bytes_max ||
         HasOpenMoreThan(places_max, start_ + range.size_bytes))) {
      break;
    }
    range.blocks.push_back(
        {.block = {segment_, block}, .offset_in_block = 0, .size_bytes = size});
    range.size_bytes += size;
    // Block by block: each step examines all open runs, which must be no more
    // than those of one message and one block.
    StartRuns(start_ + range.size_bytes);
  }
  while (true) {
    const uint64_t end = start_ + range.size_bytes;
    range.places.clear();
    const bool is_whole = AppendPlaces(end, places_max, range.places);
    const uint64_t given = places_given_ + range.places.size();
    if (range.blocks.size() == 1 || (is_whole && fits(range.blocks))) {
      range.next = {.offset = segment_start_ + (is_whole ? end : start_),
                    .places_given = is_whole ? 0 : given};
      return range;
    }
    const size_t kept = range.blocks.size() / 2;
    while (range.blocks.size() > kept) {
      range.size_bytes -= range.blocks.back().size_bytes;
      range.blocks.pop_back();
    }
  }
}

void StoredOrder::Pass(const BlockRange& range) {
  places_given_ = range.next.places_given;
  if (places_given_ > 0) {
    return;
  }
  start_ += range.size_bytes;
  block_ += range.blocks.size();
  work_ += open_.size();
  std::erase_if(open_,
                [this](uint32_t run) { return EndOfRun(run) <= start_; });
  if (block_ == archive_->SegmentBlockCount(segment_)) {
    segment_start_ += start_;
    start_ = 0;
    block_ = 0;
    ++segment_;
    SkipEmptySegments();
    is_loaded_ = false;
  }
}

}  // namespace quire
