// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/segment_layout.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "codecs/reorder/stored_run.h"
#include "server/archive/format/column.h"

namespace quire {
namespace {

absl::Status CheckCount(const char* what, uint64_t found, uint64_t expected) {
  if (found == expected) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      absl::StrCat(what, " is ", found, ", expected ", expected));
}

// The runs, each within the text and the stored text.
absl::StatusOr<std::vector<StoredRun>> ReadRuns(
    const ColumnView& sizes, const ColumnView& steps, uint64_t size_bytes,
    uint64_t stored_text_size_bytes) {
  std::vector<StoredRun> runs;
  runs.reserve(sizes.count());
  uint64_t left = size_bytes;
  uint64_t expected_offset = 0;
  for (uint64_t i = 0; i < sizes.count(); ++i) {
    // Wraps if it would begin before the stored text.
    const StoredRun run = {
        sizes[i], expected_offset + static_cast<uint64_t>(UnZigZag(steps[i]))};
    if (run.size_bytes == 0 || run.size_bytes > left ||
        run.stored_offset > stored_text_size_bytes ||
        run.size_bytes > stored_text_size_bytes - run.stored_offset) {
      return absl::DataLossError(
          absl::StrCat("run ", i, " has ", run.size_bytes, " of ", left,
                       " bytes of text, stored at ", run.stored_offset, " of ",
                       stored_text_size_bytes));
    }
    if (i > 0 && run.stored_offset == expected_offset) {
      return absl::DataLossError(absl::StrCat(
          "run ", i, " of ", run.size_bytes, " bytes follows one of ",
          runs.back().size_bytes, " of which it is a part"));
    }
    runs.push_back(run);
    left -= run.size_bytes;
    expected_offset = run.stored_offset + run.size_bytes;
  }
  QUIRE_RETURN_IF_ERROR(
      CheckCount("text in the runs", size_bytes - left, size_bytes));
  return runs;
}

// Reorders the runs.
absl::Status CheckEachByteIsUsed(std::vector<StoredRun>& runs,
                                 uint64_t stored_text_size_bytes) {
  std::ranges::sort(runs, {}, &StoredRun::stored_offset);
  uint64_t end = 0;
  for (const StoredRun& run : runs) {
    if (run.stored_offset > end) {
      break;
    }
    end = std::max(end, run.stored_offset + run.size_bytes);
  }
  if (end != stored_text_size_bytes) {
    return absl::DataLossError(
        absl::StrCat("byte ", end, " of the stored text is in no run"));
  }
  return absl::OkStatus();
}

}  // namespace

SegmentLayout::SegmentLayout(uint64_t size_bytes) : size_bytes_(size_bytes) {}

absl::StatusOr<SegmentLayout> SegmentLayout::Parse(
    ByteView section, uint64_t size_bytes, uint64_t stored_text_size_bytes,
    uint64_t run_count) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t found_size, TakeVarint(section));
  QUIRE_RETURN_IF_ERROR(CheckCount("size of the stored text", found_size,
                                   stored_text_size_bytes));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t found_count, TakeVarint(section));
  QUIRE_RETURN_IF_ERROR(CheckCount("number of runs", found_count, run_count));
  if (section.empty() || section[0] != 0) {
    return absl::FailedPreconditionError(
        "runs of a kind that this program does not know: use a newer one");
  }
  section = section.subspan(1);
  QUIRE_ASSIGN_OR_RETURN(const ColumnView sizes,
                         ColumnView::Take(section, run_count));
  QUIRE_ASSIGN_OR_RETURN(const ColumnView steps,
                         ColumnView::Parse(section, run_count));
  QUIRE_ASSIGN_OR_RETURN(
      std::vector<StoredRun> runs,
      ReadRuns(sizes, steps, size_bytes, stored_text_size_bytes));

  SegmentLayout layout(size_bytes);
  EliasFano::Builder starts(run_count + 1, size_bytes);
  layout.stored_offsets_ = PackedVector(run_count, stored_text_size_bytes);
  uint64_t start = 0;
  for (uint64_t i = 0; i < run_count; ++i) {
    starts.Add(start);
    layout.stored_offsets_.Set(i, runs[i].stored_offset);
    start += runs[i].size_bytes;
  }
  starts.Add(start);
  layout.starts_ = std::move(starts).Build();
  QUIRE_RETURN_IF_ERROR(CheckEachByteIsUsed(runs, stored_text_size_bytes));
  return layout;
}

uint64_t SegmentLayout::RunAt(uint64_t offset) const {
  uint64_t low = 0;
  uint64_t high = run_count() - 1;
  while (low < high) {
    const uint64_t middle = low + (high - low + 1) / 2;
    if (starts_[middle] <= offset) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

SegmentLayout::StoredPiece SegmentLayout::PieceOf(uint64_t run,
                                                  uint64_t offset) const {
  if (is_identity()) {
    return {offset, size_bytes_ - offset};
  }
  return {stored_offsets_[run] + (offset - starts_[run]),
          starts_[run + 1] - offset};
}

void SegmentLayout::VisitUses(
    uint64_t stored_offset, uint64_t size_bytes,
    const std::function<void(uint64_t, uint64_t)>& visit) const {
  const uint64_t stored_end = stored_offset + size_bytes;
  uint64_t start = 0;
  for (uint64_t run = 0; run < run_count() && start < size_bytes_; ++run) {
    const StoredPiece piece = PieceOf(run, start);
    const uint64_t begin = std::max(piece.stored_offset, stored_offset);
    const uint64_t end =
        std::min(piece.stored_offset + piece.size_bytes, stored_end);
    if (begin < end) {
      visit(start + (begin - piece.stored_offset), end - begin);
    }
    start += piece.size_bytes;
  }
}

uint64_t SegmentLayout::MemoryBytes() const {
  return starts_.MemoryBytes() + stored_offsets_.MemoryBytes();
}

uint64_t SegmentLayout::EstimateBytes(uint64_t size_bytes,
                                      uint64_t stored_text_size_bytes,
                                      uint64_t run_count) {
  if (run_count <= 1) {
    return 0;
  }
  const auto offset_bits =
      static_cast<uint64_t>(std::bit_width(stored_text_size_bytes));
  return EliasFano::EstimateBytes(run_count + 1, size_bytes) +
         run_count * offset_bits / 8 + 64;
}

uint64_t SegmentLayout::EstimateParsingBytes(uint64_t run_count) {
  return run_count <= 1 ? 0 : run_count * sizeof(StoredRun);
}

}  // namespace quire
