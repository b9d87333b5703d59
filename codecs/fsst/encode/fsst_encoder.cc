// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/encode/fsst_encoder.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "codecs/base/check.h"

namespace quire {

// Copies of text pieces, each followed by the terminator, in one buffer that
// the kernel may read past them, and space for their codes.
class FsstEncoder::Batch {
 public:
  // REQUIRES: as FsstEncoder::EncodeStrings for `codes`.
  Batch(const FsstGreedyKernel& kernel, MutableByteView codes)
      : kernel_(kernel), codes_(codes) {}

  // Unless null, `end` receives the offset at which the piece's codes end.
  // REQUIRES: piece.size() <= kFsstStringSizeMax.
  void Add(ByteView piece, uint32_t* end) {
    if (count_ == kJobs || text_size_ + piece.size() >= kTextSize) {
      Flush();
    }
    uint8_t* const text = &texts_[text_size_];
    std::copy(piece.begin(), piece.end(), text);
    text[piece.size()] = kernel_.terminator();
    jobs_[count_] = {.text = text,
                     .text_end = text + piece.size(),
                     .codes = &room_[2 * text_size_]};
    ends_[count_++] = end;
    text_size_ += piece.size() + 1;
  }

  void Flush() {
    kernel_.Encode(std::span(jobs_).first(count_));
    for (size_t i = 0; i < count_; ++i) {
      const auto size =
          static_cast<size_t>(jobs_[i].codes_end - jobs_[i].codes);
      // Copy short strings with one move of constant size if there is space.
      if (size <= kMoveSize && codes_.size() - size_ >= kMoveSize) {
        std::memcpy(&codes_[size_], jobs_[i].codes, kMoveSize);
      } else {
        std::copy_n(jobs_[i].codes, size, codes_.data() + size_);
      }
      size_ += size;
      if (ends_[i] != nullptr) {
        *ends_[i] = static_cast<uint32_t>(size_);
      }
    }
    count_ = 0;
    text_size_ = 0;
  }

  size_t size() const { return size_; }

 private:
  static constexpr size_t kTextSize = 16 << 10;
  static constexpr size_t kJobs = 256;
  static constexpr size_t kMoveSize = 16;

  const FsstGreedyKernel& kernel_;
  MutableByteView codes_;
  size_t size_ = 0;
  size_t count_ = 0;
  size_t text_size_ = 0;
  std::array<FsstJob, kJobs> jobs_;
  std::array<uint32_t*, kJobs> ends_;
  std::array<uint8_t, kTextSize + sizeof(uint64_t)> texts_;
  std::array<uint8_t, 2 * kTextSize + kMoveSize> room_;
};

FsstEncoder::FsstEncoder(const SymbolTable& table, FsstLevel level) {
  if (level == FsstLevel::kHigh) {
    optimal_parse_.emplace(table);
    return;
  }
  const std::vector<FsstSymbol> symbols = GreedySymbols(table);
  kernel_ = FsstGreedyKernel::Make(symbols);
  if (kernel_ != nullptr) {
    return;
  }
  entries_.resize(256);
  for (size_t code = 0; code < symbols.size(); ++code) {
    if (symbols[code].size > 0) {
      entries_[symbols[code].bytes & 0xff].push_back(
          {symbols[code], static_cast<uint8_t>(code)});
    }
  }
  for (auto& entries : entries_) {
    std::stable_sort(entries.begin(), entries.end(),
                     [](const Entry& a, const Entry& b) {
                       return a.symbol.size > b.symbol.size;
                     });
  }
}

size_t FsstEncoder::EncodePiece(ByteView piece, uint8_t* codes) const {
  if (optimal_parse_.has_value()) {
    return optimal_parse_->Encode(piece, codes);
  }
  size_t size = 0;
  for (size_t i = 0; i < piece.size();) {
    uint64_t word = 0;
    const size_t left = std::min(piece.size() - i, kFsstSymbolSizeMax);
    std::memcpy(&word, piece.data() + i, left);
    const auto& entries = entries_[piece[i]];
    const auto match =
        std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
          const size_t shift = 64 - 8 * size_t{entry.symbol.size};
          return entry.symbol.size <= left &&
                 (word ^ entry.symbol.bytes) << shift == 0;
        });
    if (match == entries.end()) {
      codes[size++] = kFsstEscape;
      codes[size++] = piece[i++];
    } else {
      codes[size++] = match->code;
      i += match->symbol.size;
    }
  }
  return size;
}

size_t FsstEncoder::Encode(ByteView text, MutableByteView codes) const {
  QUIRE_CHECK(codes.size() >= CodesSizeMax(text.size()));
  if (kernel_ != nullptr) {
    Batch batch(*kernel_, codes);
    for (size_t i = 0; i < text.size(); i += kFsstStringSizeMax) {
      batch.Add(text.subspan(i, std::min(text.size() - i, kFsstStringSizeMax)),
                nullptr);
    }
    batch.Flush();
    return batch.size();
  }
  size_t size = 0;
  while (!text.empty()) {
    const size_t piece_size = std::min(text.size(), kFsstStringSizeMax);
    size += EncodePiece(text.first(piece_size), codes.data() + size);
    text = text.subspan(piece_size);
  }
  return size;
}

size_t FsstEncoder::EncodeStrings(std::span<const ByteView> texts,
                                  MutableByteView codes,
                                  std::span<uint32_t> code_ends) const {
  QUIRE_CHECK(code_ends.size() == texts.size());
  if (kernel_ != nullptr) {
    Batch batch(*kernel_, codes);
    for (size_t i = 0; i < texts.size(); ++i) {
      ByteView left = texts[i];
      while (left.size() > kFsstStringSizeMax) {
        batch.Add(left.first(kFsstStringSizeMax), nullptr);
        left = left.subspan(kFsstStringSizeMax);
      }
      batch.Add(left, &code_ends[i]);
    }
    batch.Flush();
    return batch.size();
  }
  size_t size = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    size += Encode(texts[i], codes.subspan(size));
    code_ends[i] = static_cast<uint32_t>(size);
  }
  return size;
}

bool FsstEquals(ByteView codes_a, ByteView codes_b) {
  return std::equal(codes_a.begin(), codes_a.end(), codes_b.begin(),
                    codes_b.end());
}

}  // namespace quire
