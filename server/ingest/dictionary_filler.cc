// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/dictionary_filler.h"

#include <algorithm>
#include <utility>

#include "codecs/base/status_macros.h"
#include "codecs/rlz/uniform_dictionary.h"

namespace quire {
namespace {

constexpr uint64_t kBlockCountMax = 32;

}  // namespace

DictionaryFiller::DictionaryFiller(std::unique_ptr<DictionaryBuilder> samples,
                                   uint64_t text_size_bytes,
                                   uint32_t block_size_bytes)
    : samples_(std::move(samples)),
      text_size_bytes_(text_size_bytes),
      block_size_bytes_(std::min<uint64_t>(block_size_bytes, text_size_bytes)),
      block_count_(static_cast<size_t>(
          std::min(kBlockCountMax, text_size_bytes_ / block_size_bytes_))) {
  stride_bytes_ = text_size_bytes_ / block_count_;
  blocks_.reserve(block_count_ * block_size_bytes_);
}

absl::StatusOr<std::unique_ptr<DictionaryFiller>> DictionaryFiller::Create(
    uint64_t free_size_bytes, uint64_t text_size_bytes,
    uint32_t block_size_bytes) {
  QUIRE_ASSIGN_OR_RETURN(
      std::unique_ptr<DictionaryBuilder> samples,
      MakeUniformDictionaryBuilder({.dictionary_size_bytes = free_size_bytes},
                                   text_size_bytes));
  return std::unique_ptr<DictionaryFiller>(new DictionaryFiller(
      std::move(samples), text_size_bytes, block_size_bytes));
}

absl::Status DictionaryFiller::Add(ByteView piece) {
  QUIRE_RETURN_IF_ERROR(samples_->Add(piece));
  const uint64_t end = position_ + piece.size();
  while (blocks_.size() < block_count_ * block_size_bytes_) {
    // Of the next byte that is missing.
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
    const std::string& dictionary, const CodecSpec& spec) const {
  auto context = std::make_shared<CodecContext>();
  context->dictionary = dictionary;
  QUIRE_ASSIGN_OR_RETURN(
      const std::unique_ptr<BlockCodec> codec,
      MakeBlockCodec(spec, std::move(context), CodecUse::kEncodeAndDecode));
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

absl::StatusOr<std::string> DictionaryFiller::Fill(std::string chosen,
                                                   const CodecSpec& codec) {
  std::string filled = chosen + samples_->Take();
  QUIRE_ASSIGN_OR_RETURN(const uint64_t chosen_size,
                         EncodedSize(chosen, codec));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t filled_size,
                         EncodedSize(filled, codec));
  // Samples are stored about as small as the blocks would be without them.
  const double blocks = static_cast<double>(blocks_.size());
  const double text = static_cast<double>(text_size_bytes_);
  const double added = static_cast<double>(filled.size() - chosen.size());
  const double without = static_cast<double>(chosen_size) / blocks * text;
  const double with = static_cast<double>(filled_size) / blocks * text +
                      static_cast<double>(chosen_size) / blocks * added;
  return with < without ? std::move(filled) : std::move(chosen);
}

}  // namespace quire
