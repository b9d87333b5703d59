// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/dictionary/dictionary_filler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "codecs/rlz/uniform_dictionary.h"

namespace quire {
namespace {

constexpr uint64_t kBlockCountMax = 64;
// Limit on the trial's part of all blocks, so that most samples remain.
constexpr uint64_t kBlockPart = 8;
constexpr uint64_t kFillSampleSizeBytes = 1024;
// Tries all samples, and every fourth.
constexpr size_t kStepFactor = 4;
constexpr size_t kStepMax = 4;

}  // namespace

DictionaryFiller::DictionaryFiller(std::unique_ptr<DictionaryBuilder> samples,
                                   uint64_t free_size_bytes,
                                   uint64_t text_size_bytes,
                                   uint32_t block_size_bytes)
    : samples_(std::move(samples)),
      free_size_bytes_(free_size_bytes),
      text_size_bytes_(text_size_bytes),
      block_size_bytes_(std::min<uint64_t>(block_size_bytes, text_size_bytes)),
      block_count_(static_cast<size_t>(
          std::clamp(text_size_bytes_ / block_size_bytes_ / kBlockPart,
                     uint64_t{1}, kBlockCountMax))) {
  stride_bytes_ = text_size_bytes_ / block_count_;
  blocks_.reserve(block_count_ * block_size_bytes_);
}

absl::StatusOr<std::unique_ptr<DictionaryFiller>> DictionaryFiller::Create(
    uint64_t free_size_bytes, uint64_t text_size_bytes,
    uint32_t block_size_bytes) {
  QUIRE_ASSIGN_OR_RETURN(
      std::unique_ptr<DictionaryBuilder> samples,
      MakeUniformDictionaryBuilder({.dictionary_size_bytes = free_size_bytes,
                                    .sample_size_bytes = kFillSampleSizeBytes},
                                   text_size_bytes));
  return std::unique_ptr<DictionaryFiller>(new DictionaryFiller(
      std::move(samples), free_size_bytes, text_size_bytes, block_size_bytes));
}

absl::Status DictionaryFiller::Add(ByteView piece) {
  QUIRE_RETURN_IF_ERROR(samples_->Add(piece));
  const uint64_t end = position_ + piece.size();
  while (blocks_.size() < block_count_ * block_size_bytes_) {
    // Offset of the next missing byte.
    const uint64_t from = blocks_.size() / block_size_bytes_ * stride_bytes_ +
                          blocks_.size() % block_size_bytes_;
    if (from >= end) {
      break;
    }
    const uint64_t rest =
        block_size_bytes_ - blocks_.size() % block_size_bytes_;
    const ByteView part =
        piece.subspan(static_cast<size_t>(from - position_),
                      static_cast<size_t>(std::min(rest, end - from)));
    blocks_.insert(blocks_.end(), part.begin(), part.end());
  }
  position_ = end;
  return absl::OkStatus();
}

absl::Status DictionaryFiller::Finish() {
  return samples_->FinishPass();
}

absl::StatusOr<uint64_t> DictionaryFiller::EncodedSize(
    const std::string& dictionary, const CodecSpec& spec,
    const Workers& workers) const {
  auto context = std::make_shared<CodecContext>();
  context->workers = workers;
  context->dictionary = dictionary;
  QUIRE_ASSIGN_OR_RETURN(
      const std::unique_ptr<BlockCodec> codec,
      MakeBlockCodec(spec, std::move(context), CodecUse::kTrial));
  const std::unique_ptr<BlockCodec::Scratch> scratch = codec->NewScratch();
  const auto block_size = static_cast<size_t>(block_size_bytes_);
  std::vector<uint8_t> stored(codec->StoredSizeMax(block_size));
  uint64_t size_bytes = 0;
  for (size_t begin = 0; begin < blocks_.size(); begin += block_size) {
    QUIRE_ASSIGN_OR_RETURN(
        const size_t size,
        codec->Encode(ByteView(blocks_).subspan(begin, block_size), stored,
                      *scratch));
    size_bytes += std::min(size, block_size);
  }
  return size_bytes;
}

bool DictionaryFiller::IsInTrial(size_t sample) const {
  // The position of a sample (uniform_dictionary.h).
  const uint64_t count =
      (free_size_bytes_ + kFillSampleSizeBytes - 1) / kFillSampleSizeBytes;
  const auto spread = static_cast<unsigned __int128>(sample) *
                      (text_size_bytes_ - free_size_bytes_) / count;
  const uint64_t begin =
      sample * kFillSampleSizeBytes + static_cast<uint64_t>(spread);
  const uint64_t before = begin / stride_bytes_;
  const uint64_t end = begin + kFillSampleSizeBytes;
  return (before < block_count_ &&
          begin < before * stride_bytes_ + block_size_bytes_) ||
         (before + 1 < block_count_ && (before + 1) * stride_bytes_ < end);
}

void DictionaryFiller::AppendSamples(absl::string_view samples, size_t step,
                                     bool is_trial,
                                     std::string& dictionary) const {
  for (size_t i = 0; i * kFillSampleSizeBytes < samples.size(); i += step) {
    if (!is_trial || !IsInTrial(i)) {
      absl::StrAppend(&dictionary, samples.substr(i * kFillSampleSizeBytes,
                                                  kFillSampleSizeBytes));
    }
  }
}

absl::StatusOr<std::string> DictionaryFiller::Fill(std::string chosen,
                                                   const CodecSpec& codec,
                                                   double worth_min,
                                                   const Workers& workers) {
  const std::string samples = samples_->Take();
  const auto block_bytes = static_cast<double>(blocks_.size());
  QUIRE_ASSIGN_OR_RETURN(const uint64_t plain_size,
                         EncodedSize(chosen, codec, workers));
  double best_gain = 0;
  size_t best_step = 0;
  for (size_t step = 1; step <= kStepMax; step *= kStepFactor) {
    std::string dictionary = chosen;
    AppendSamples(samples, step, /*is_trial=*/true, dictionary);
    QUIRE_ASSIGN_OR_RETURN(const uint64_t size,
                           EncodedSize(dictionary, codec, workers));
    const double share_saved =
        (static_cast<double>(plain_size) - static_cast<double>(size)) /
        block_bytes;
    // Samples are stored about as small as their text would be without them, so
    // the rest of the text decides.
    const double added =
        static_cast<double>(samples.size()) / static_cast<double>(step);
    const double gain =
        (static_cast<double>(text_size_bytes_) - added) * share_saved -
        worth_min * added;
    if (gain > best_gain) {
      best_gain = gain;
      best_step = step;
    }
  }
  if (best_step != 0) {
    AppendSamples(samples, best_step, /*is_trial=*/false, chosen);
  }
  return chosen;
}

}  // namespace quire
