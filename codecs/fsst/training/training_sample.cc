// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/training/training_sample.h"

#include <algorithm>

namespace quire {

TrainingSample::TrainingSample(std::span<const ByteView> texts,
                               size_t size_bytes_max, bool zero_terminated)
    : zero_terminated_(zero_terminated) {
  const size_t size_max = std::min(size_bytes_max, kSizeBytesMax);
  uint64_t total_size = 0;
  for (const ByteView text : texts) {
    total_size += text.size();
  }
  if (total_size <= size_max) {
    bytes_.reserve(total_size + kReadableBehindBytes);
    TakeAll(texts);
  } else {
    bytes_.reserve(size_max + kReadableBehindBytes);
    TakePieces(texts, total_size, size_max);
  }
  bytes_.resize(bytes_.size() + kReadableBehindBytes);
}

void TrainingSample::TakeAll(std::span<const ByteView> texts) {
  for (const ByteView text : texts) {
    Take(text);
  }
}

void TrainingSample::TakePieces(std::span<const ByteView> texts,
                                uint64_t total_size, size_t size_max) {
  const uint64_t piece_count =
      (size_max + kPieceSizeBytes - 1) / kPieceSizeBytes;
  size_t text_index = 0;
  uint64_t text_begin = 0;  // of texts[text_index], in the concatenation
  uint64_t taken_end = 0;   // nothing is taken twice
  size_t left = size_max;
  for (uint64_t i = 0; i < piece_count && text_index < texts.size(); ++i) {
    // i * total_size / piece_count without overflow.
    const uint64_t target = total_size / piece_count * i +
                            total_size % piece_count * i / piece_count;
    uint64_t position = std::max(target, taken_end);
    size_t wanted = std::min(kPieceSizeBytes, left);
    while (wanted > 0) {
      while (text_index < texts.size() &&
             text_begin + texts[text_index].size() <= position) {
        text_begin += texts[text_index].size();
        ++text_index;
      }
      if (text_index == texts.size()) {
        break;
      }
      const ByteView text = texts[text_index];
      const size_t offset = text.size() < kPieceSizeBytes
                                ? 0
                                : static_cast<size_t>(position - text_begin);
      const size_t size = std::min(wanted, text.size() - offset);
      Take(text.subspan(offset, size));
      wanted -= size;
      left -= size;
      // Skip the rest of a short text; otherwise its beginning would repeat.
      taken_end = text.size() < kPieceSizeBytes ? text_begin + text.size()
                                                : text_begin + offset + size;
      position = taken_end;
    }
  }
}

void TrainingSample::Take(ByteView text) {
  while (!text.empty()) {
    size_t size = std::min(text.size(), kPieceSizeBytesMax);
    if (zero_terminated_) {
      const auto zero = std::ranges::find(text.first(size), 0);
      size = static_cast<size_t>(zero - text.begin());
    }
    AddPiece(text.first(size));
    const bool at_zero =
        zero_terminated_ && size < text.size() && text[size] == 0;
    text = text.subspan(size + (at_zero ? 1 : 0));
  }
}

void TrainingSample::AddPiece(ByteView piece) {
  if (piece.empty()) {
    return;
  }
  bytes_.insert(bytes_.end(), piece.begin(), piece.end());
  piece_ends_.push_back(static_cast<uint32_t>(bytes_.size()));
}

}  // namespace quire
