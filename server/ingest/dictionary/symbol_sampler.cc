// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/dictionary/symbol_sampler.h"

#include <algorithm>
#include <vector>

#include "codecs/fsst/table/symbol_table.h"
#include "codecs/fsst/training/symbol_trainer.h"

namespace quire {

SymbolSampler::SymbolSampler(uint64_t text_size_bytes)
    : sample_size_bytes_(
          std::min(text_size_bytes, kSampleCount * kSampleSizeBytes)),
      left_out_bytes_(text_size_bytes - sample_size_bytes_),
      sample_count_((sample_size_bytes_ + kSampleSizeBytes - 1) /
                    kSampleSizeBytes) {
  sample_.reserve(sample_size_bytes_);
}

uint64_t SymbolSampler::SampleStart(uint64_t index) const {
  // index * left_out / count, without overflow.
  return index * kSampleSizeBytes + left_out_bytes_ / sample_count_ * index +
         left_out_bytes_ % sample_count_ * index / sample_count_;
}

void SymbolSampler::Add(ByteView piece) {
  const uint64_t piece_begin = position_;
  position_ += piece.size();
  while (sample_.size() < sample_size_bytes_) {
    // The rest of the current sample, or the next sample.
    const uint64_t taken = sample_.size() % kSampleSizeBytes;
    const uint64_t from =
        SampleStart(sample_.size() / kSampleSizeBytes) + taken;
    if (from >= position_) {
      break;
    }
    const uint64_t size =
        std::min({kSampleSizeBytes - taken, sample_size_bytes_ - sample_.size(),
                  position_ - from});
    const ByteView part = piece.subspan(from - piece_begin, size);
    sample_.append(AsText(part).data(), part.size());
  }
}

std::string SymbolSampler::Train() const {
  std::vector<ByteView> texts;
  for (ByteView left = AsBytes(sample_); !left.empty();) {
    texts.push_back(
        left.first(std::min<size_t>(left.size(), kSampleSizeBytes)));
    left = left.subspan(texts.back().size());
  }
  return TrainSymbolTable(texts, {.sample_size_bytes = sample_.size()})
      .Serialise();
}

}  // namespace quire
