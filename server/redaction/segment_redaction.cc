// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/redaction/segment_redaction.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "server/redaction/window_table.h"

namespace quire {
namespace {

// A part of a run that is wholly removed or wholly kept.
struct RunPiece {
  TextInterval stored;
  bool is_removed = false;
};

// Returns the pieces of the text, in its order.
std::vector<RunPiece> DivideRuns(const SegmentLayout& layout,
                                 std::span<const TextInterval> removed) {
  std::vector<RunPiece> pieces;
  auto next = removed.begin();
  for (uint64_t run = 0; run < layout.run_count(); ++run) {
    uint64_t at = layout.StartOf(run);
    SegmentLayout::StoredPiece rest = layout.PieceOf(run, at);
    while (rest.size_bytes > 0) {
      while (next != removed.end() && next->end <= at) {
        ++next;
      }
      const bool is_removed = next != removed.end() && next->begin <= at;
      uint64_t size_bytes = rest.size_bytes;
      if (next != removed.end()) {
        size_bytes =
            std::min(size_bytes, (is_removed ? next->end : next->begin) - at);
      }
      pieces.push_back(
          {.stored = {rest.stored_offset, rest.stored_offset + size_bytes},
           .is_removed = is_removed});
      at += size_bytes;
      rest.stored_offset += size_bytes;
      rest.size_bytes -= size_bytes;
    }
  }
  return pieces;
}

// The stored text that kept pieces use.
class KeptText {
 public:
  explicit KeptText(std::span<const RunPiece> pieces) {
    for (const RunPiece& piece : pieces) {
      if (!piece.is_removed) {
        pieces_.push_back(piece.stored);
      }
    }
    std::ranges::sort(pieces_, {}, &TextInterval::begin);
    uint64_t reach = 0;
    for (TextInterval& piece : pieces_) {
      if (parts_.empty() || piece.begin > reach) {
        parts_.push_back(piece);
      }
      reach = std::max(reach, piece.end);
      parts_.back().end = reach;
      piece.end = reach;
    }
  }

  // In order and not adjacent.
  const std::vector<TextInterval>& parts() const { return parts_; }

  // Calls `visit` for the parts of an interval that are kept and those that are
  // not, in order.
  template <typename Visit>
  void Divide(TextInterval interval, Visit&& visit) const {
    auto part = std::ranges::upper_bound(parts_, interval.begin, {},
                                         &TextInterval::end);
    while (interval.begin < interval.end) {
      const bool is_kept =
          part != parts_.end() && part->begin <= interval.begin;
      uint64_t end = interval.end;
      if (part != parts_.end()) {
        end = std::min(end, is_kept ? part->end : part->begin);
      }
      visit(TextInterval{interval.begin, end}, is_kept);
      part += is_kept && end == part->end ? 1 : 0;
      interval.begin = end;
    }
  }

  // Adds the cuts after which each window of a kept interval is in one piece,
  // or contains a cut.
  void AddCuts(TextInterval interval, std::vector<uint64_t>& cuts) const {
    uint64_t window = interval.begin;
    while (window + kWindowSizeBytes <= interval.end) {
      const uint64_t reach = ReachFrom(window);
      if (reach >= interval.end) {
        return;
      }
      if (reach < window + kWindowSizeBytes) {
        cuts.push_back(reach);
        window = reach;
      } else {
        window = reach - kWindowSizeBytes + 1;
      }
    }
  }

 private:
  // Returns the end of the longest piece that holds `offset`, which is kept.
  uint64_t ReachFrom(uint64_t offset) const {
    const auto after =
        std::ranges::upper_bound(pieces_, offset, {}, &TextInterval::begin);
    return std::prev(after)->end;
  }

  // In order of begin, each with the largest end up to it.
  std::vector<TextInterval> pieces_;
  std::vector<TextInterval> parts_;
};

// Appends the runs of the new layout.
class RunWriter {
 public:
  RunWriter(const SegmentRedaction& plan, uint64_t stored_text_size_bytes)
      : plan_(plan), end_zeros_(stored_text_size_bytes + plan.cuts.size()) {}

  void AppendStored(TextInterval stored) {
    auto cut = std::ranges::upper_bound(plan_.cuts, stored.begin);
    while (stored.begin < stored.end) {
      const uint64_t end =
          cut == plan_.cuts.end() ? stored.end : std::min(stored.end, *cut);
      runs_.Append(
          end - stored.begin,
          stored.begin + static_cast<uint64_t>(cut - plan_.cuts.begin()));
      stored.begin = end;
      cut += cut == plan_.cuts.end() ? 0 : 1;
    }
  }

  void AppendZeros(uint64_t size_bytes) {
    // Each byte of the stored text must be in a run.
    for (; size_bytes > 0 && next_cut_ < plan_.cuts.size(); --size_bytes) {
      runs_.Append(1, plan_.cuts[next_cut_] + next_cut_);
      ++next_cut_;
    }
    while (size_bytes > 0) {
      const uint64_t run_size_bytes =
          std::min(size_bytes, plan_.end_zeros_size_bytes);
      runs_.Append(run_size_bytes, end_zeros_);
      size_bytes -= run_size_bytes;
    }
  }

  std::vector<StoredRun> Take() && { return std::move(runs_).Take(); }

 private:
  const SegmentRedaction& plan_;
  const uint64_t end_zeros_;
  size_t next_cut_ = 0;
  RunList runs_;
};

// Returns the number of zeros after the stored text, given the sizes of the
// shared parts in order. The first of these take the zeros of the cuts.
uint64_t EndZeros(std::span<const uint64_t> shared, size_t cut_count,
                  uint64_t size_bytes_max) {
  uint64_t longest = 0;
  uint64_t cuts_left = cut_count;
  for (const uint64_t size : shared) {
    const uint64_t taken = std::min(size, cuts_left);
    cuts_left -= taken;
    longest = std::max(longest, size - taken);
  }
  return std::min(longest, size_bytes_max);
}

}  // namespace

bool SegmentRedaction::Changes(uint64_t begin, uint64_t end) const {
  const auto zero =
      std::ranges::upper_bound(zeros, begin, {}, &TextInterval::end);
  const auto cut = std::ranges::lower_bound(cuts, begin);
  return (zero != zeros.end() && zero->begin < end) ||
         (cut != cuts.end() && *cut < end);
}

std::vector<uint8_t> SegmentRedaction::Apply(uint64_t begin,
                                             ByteView text) const {
  std::vector<uint8_t> result(text.begin(), text.end());
  const uint64_t end = begin + text.size();
  for (auto zero =
           std::ranges::upper_bound(zeros, begin, {}, &TextInterval::end);
       zero != zeros.end() && zero->begin < end; ++zero) {
    const uint64_t from = std::max(zero->begin, begin) - begin;
    const uint64_t to = std::min(zero->end, end) - begin;
    std::fill_n(result.begin() + static_cast<ptrdiff_t>(from), to - from,
                uint8_t{0});
  }
  const auto first = std::ranges::lower_bound(cuts, begin);
  for (auto cut = std::ranges::lower_bound(cuts, end); cut != first;) {
    --cut;
    result.insert(result.begin() + static_cast<ptrdiff_t>(*cut - begin),
                  uint8_t{0});
  }
  return result;
}

void SegmentRedaction::VisitKept(
    uint64_t begin, uint64_t end,
    absl::FunctionRef<void(TextInterval part, bool continues)> visit) const {
  // The first interval that ends at or after the begin.
  auto zero = std::ranges::lower_bound(zeros, begin, {}, &TextInterval::end);
  auto cut = std::ranges::lower_bound(cuts, begin);
  bool continues = !(cut != cuts.end() && *cut == begin);
  for (uint64_t at = begin; at < end;) {
    if (zero != zeros.end() && zero->begin <= at) {
      continues = false;
      at = std::max(at, zero->end);
      ++zero;
      continue;
    }
    while (cut != cuts.end() && *cut <= at) {
      ++cut;
    }
    uint64_t part_end = zero == zeros.end() ? end : std::min(end, zero->begin);
    part_end = cut == cuts.end() ? part_end : std::min(part_end, *cut);
    visit({at, part_end}, continues);
    continues = false;
    at = part_end;
  }
}

SegmentRedaction PlanSegmentRedaction(const SegmentLayout& layout,
                                      uint64_t size_bytes,
                                      uint64_t stored_text_size_bytes,
                                      std::span<const TextInterval> removed,
                                      uint32_t block_size_bytes) {
  SegmentRedaction plan;
  plan.stored_text_size_bytes = stored_text_size_bytes;
  if (layout.is_identity()) {
    plan.zeros.assign(removed.begin(), removed.end());
    return plan;
  }
  const std::vector<RunPiece> pieces = DivideRuns(layout, removed);
  const KeptText kept(pieces);
  kept.Divide({0, stored_text_size_bytes},
              [&plan](TextInterval part, bool is_kept) {
                if (!is_kept) {
                  plan.zeros.push_back(part);
                }
              });
  std::vector<uint64_t> shared;
  for (const RunPiece& piece : pieces) {
    if (piece.is_removed) {
      kept.Divide(piece.stored, [&](TextInterval part, bool is_kept) {
        if (is_kept) {
          shared.push_back(part.end - part.begin);
          plan.shared_size_bytes += shared.back();
          kept.AddCuts(part, plan.cuts);
        }
      });
    }
  }
  std::ranges::sort(plan.cuts);
  plan.cuts.erase(std::unique(plan.cuts.begin(), plan.cuts.end()),
                  plan.cuts.end());
  // The stored text must not be longer than the text: it has at least the bytes
  // that are shared less.
  plan.end_zeros_size_bytes = EndZeros(
      shared, plan.cuts.size(),
      std::min<uint64_t>(block_size_bytes, size_bytes - stored_text_size_bytes -
                                               plan.cuts.size()));
  plan.stored_text_size_bytes += plan.cuts.size() + plan.end_zeros_size_bytes;
  RunWriter runs(plan, stored_text_size_bytes);
  for (const RunPiece& piece : pieces) {
    if (!piece.is_removed) {
      runs.AppendStored(piece.stored);
      continue;
    }
    kept.Divide(piece.stored, [&runs](TextInterval part, bool is_kept) {
      if (is_kept) {
        runs.AppendZeros(part.end - part.begin);
      } else {
        runs.AppendStored(part);
      }
    });
  }
  plan.runs = std::move(runs).Take();
  return plan;
}

}  // namespace quire
