// SPDX-License-Identifier: Apache-2.0
#include "loadtest/codec_bench/text_sample.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"

namespace quire {

TextSample::TextSample(const SourceText& text, uint64_t stride) : text_(text) {
  const uint64_t piece_count =
      (text.size_bytes() + kPieceSizeBytes - 1) / kPieceSizeBytes;
  stride_ = std::clamp<uint64_t>(stride, 1, std::max<uint64_t>(1, piece_count));
  first_piece_ = stride_ / 2;
  for (uint64_t i = first_piece_; i < piece_count; i += stride_) {
    size_bytes_ +=
        std::min(kPieceSizeBytes, text.size_bytes() - i * kPieceSizeBytes);
  }
}

double TextSample::ScaleToText() const {
  return size_bytes_ == 0 ? 1.0
                          : static_cast<double>(text_.size_bytes()) /
                                static_cast<double>(size_bytes_);
}

absl::Status TextSample::Read(uint64_t offset, MutableByteView out) const {
  if (offset > size_bytes_ || out.size() > size_bytes_ - offset) {
    return absl::OutOfRangeError(absl::StrCat("the sample has ", size_bytes_,
                                              " bytes, asked for ", out.size(),
                                              " at ", offset));
  }
  while (!out.empty()) {
    const uint64_t piece = first_piece_ + offset / kPieceSizeBytes * stride_;
    const uint64_t inside = offset % kPieceSizeBytes;
    const auto size = static_cast<size_t>(
        std::min<uint64_t>(out.size(), kPieceSizeBytes - inside));
    QUIRE_RETURN_IF_ERROR(
        text_.Read(piece * kPieceSizeBytes + inside, out.first(size)));
    offset += size;
    out = out.subspan(size);
  }
  return absl::OkStatus();
}

}  // namespace quire
