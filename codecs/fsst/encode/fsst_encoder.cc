// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/encode/fsst_encoder.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "codecs/base/check.h"

namespace quire {

// Text pieces, and space for their codes.
class FsstEncoder::Batch {
 public:
  // REQUIRES: as FsstEncoder::EncodeStrings for `codes`.
  Batch(const FsstGreedyKernel& kernel, MutableByteView codes)
      : kernel_(kernel), codes_(codes) {}

  // Unless null, `end` receives the offset at which the piece's codes end.
  // REQUIRES: piece.size() <= kFsstStringSizeMax.
  void Add(ByteView piece, uint32_t* end) {
    const size_t piece_space =
        CodesSizeMax(piece.size()) + FsstGreedyKernel::kPaddingSize;
    if (count_ == kJobs || buffer_.size() - buffer_used_ < piece_space) {
      Flush();
    }
    jobs_[count_] = {.text = piece.data(),
                     .text_end = piece.data() + piece.size(),
                     .codes = &buffer_[buffer_used_]};
    ends_[count_++] = end;
    buffer_used_ += piece_space;
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
    buffer_used_ = 0;
  }

  size_t size() const { return size_; }

 private:
  static constexpr size_t kJobs = 256;
  // Space for 32 pieces of the longest size.
  static constexpr size_t kBufferSize =
      32 * (2 * kFsstStringSizeMax + FsstGreedyKernel::kPaddingSize);
  // All of it is readable at any job.
  static constexpr size_t kMoveSize = FsstGreedyKernel::kPaddingSize;

  const FsstGreedyKernel& kernel_;
  MutableByteView codes_;
  size_t size_ = 0;
  size_t count_ = 0;
  size_t buffer_used_ = 0;
  std::array<FsstJob, kJobs> jobs_;
  std::array<uint32_t*, kJobs> ends_;
  std::array<uint8_t, kBufferSize> buffer_;
};

FsstEncoder::FsstEncoder(const SymbolTable& table, FsstLevel level) {
  if (level == FsstLevel::kHigh) {
    optimal_parse_.emplace(table);
  } else {
    kernel_ = std::make_shared<const FsstGreedyKernel>(GreedySymbols(table));
  }
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
    size += optimal_parse_->Encode(text.first(piece_size), codes.data() + size);
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

}  // namespace quire
