// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/redaction/window_table.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "codecs/base/check.h"

namespace quire {

WindowTable::WindowTable(ByteView text, size_t count_max)
    : text_(text),
      slots_(std::bit_ceil(std::max<size_t>(2 * count_max, 2)), kNone),
      slot_shift_(64 - std::countr_zero(slots_.size())),
      filter_(std::bit_ceil(std::max<size_t>(count_max / 4, 1))),
      filter_shift_(64 - std::countr_zero(64 * filter_.size())) {
  QUIRE_CHECK(text.size() < kNone);
}

uint64_t WindowTable::HashOf(const uint8_t* window) {
  uint64_t hash = 0;
  for (size_t i = 0; i < kWindowSizeBytes; ++i) {
    hash = hash * kBase + window[i] + 1;
  }
  return hash;
}

uint32_t WindowTable::Find(uint64_t mixed, const uint8_t* window) const {
  const size_t mask = slots_.size() - 1;
  for (size_t slot = mixed >> slot_shift_; slots_[slot] != kNone;
       slot = (slot + 1) & mask) {
    if (std::memcmp(text_.data() + slots_[slot], window, kWindowSizeBytes) ==
        0) {
      return slots_[slot];
    }
  }
  return kNone;
}

void WindowTable::Add(size_t begin, size_t end) {
  if (begin == end) {
    return;
  }
  const size_t mask = slots_.size() - 1;
  uint64_t hash = HashOf(text_.data() + begin);
  for (size_t i = begin;; ++i) {
    const uint64_t mixed = Mix(hash);
    if (Find(mixed, text_.data() + i) == kNone) {
      QUIRE_CHECK(count_ < slots_.size() / 2);
      ++count_;
      size_t slot = mixed >> slot_shift_;
      while (slots_[slot] != kNone) {
        slot = (slot + 1) & mask;
      }
      slots_[slot] = static_cast<uint32_t>(i);
      const uint64_t bit = mixed >> filter_shift_;
      filter_[bit / 64] |= uint64_t{1} << (bit % 64);
    }
    if (i + 1 == end) {
      return;
    }
    hash = Roll(hash, text_[i], text_[i + kWindowSizeBytes]);
  }
}

void WindowScanner::Add(ByteView piece) {
  const auto visit = [this](size_t, uint32_t position) { visit_(position); };
  // Windows that begin in an earlier piece.
  std::array<uint8_t, 2 * (kWindowSizeBytes - 1)> seam;
  const size_t head_size = std::min(piece.size(), kWindowSizeBytes - 1);
  std::copy_n(tail_.begin(), tail_size_, seam.begin());
  std::copy_n(piece.begin(), head_size, seam.begin() + tail_size_);
  const ByteView joined = ByteView(seam).first(tail_size_ + head_size);
  table_.Scan(joined, visit);
  table_.Scan(piece, visit);
  const ByteView end = piece.size() < kWindowSizeBytes - 1 ? joined : piece;
  tail_size_ = std::min(end.size(), kWindowSizeBytes - 1);
  std::ranges::copy(end.last(tail_size_), tail_.begin());
}

TextCollector::TextCollector(size_t size_bytes_max, Check check)
    : size_max_(std::max(size_bytes_max, 2 * kWindowSizeBytes)),
      check_(std::move(check)) {}

void TextCollector::Add(ByteView piece) {
  while (!piece.empty()) {
    if (batch_.size() == size_max_) {
      Flush();
    }
    const size_t size = std::min(piece.size(), size_max_ - batch_.size());
    batch_.insert(batch_.end(), piece.begin(),
                  piece.begin() + static_cast<ptrdiff_t>(size));
    piece = piece.subspan(size);
  }
}

void TextCollector::Break() {
  if (begin_ + kWindowSizeBytes <= batch_.size()) {
    texts_.push_back({begin_, batch_.size()});
  } else {
    batch_.resize(begin_);
  }
  begin_ = batch_.size();
}

absl::Status TextCollector::Finish() {
  Break();
  Flush();
  return status_;
}

void TextCollector::Flush() {
  const size_t tail_size =
      std::min(batch_.size() - begin_, kWindowSizeBytes - 1);
  const std::vector<uint8_t> tail(
      batch_.end() - static_cast<ptrdiff_t>(tail_size), batch_.end());
  Break();
  if (status_.ok() && !texts_.empty()) {
    status_ = check_(batch_, texts_);
  }
  batch_ = tail;
  begin_ = 0;
  texts_.clear();
}

}  // namespace quire
