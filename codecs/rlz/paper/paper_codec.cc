// SPDX-License-Identifier: Apache-2.0
//
// A stored block is either a form of its factors (factor_form.h), or, where it
// would be larger than the text, one byte 00 and the text.
#include <algorithm>
#include <utility>

#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"
#include "codecs/codec_base.h"
#include "codecs/codec_factories.h"
#include "codecs/rlz/factor.h"
#include "codecs/rlz/paper/factor_form.h"
#include "codecs/rlz/suffix_index.h"

namespace quire {
namespace {

constexpr uint8_t kTextFollows = 0;

class PaperCodec final : public CodecBase {
 public:
  // `index` is null for decoding.
  PaperCodec(const CodecInfo& info, int level,
             std::shared_ptr<const CodecContext> context, CodecUse use,
             std::unique_ptr<const SuffixIndex> index)
      : CodecBase(info, use),
        level_(level),
        context_(std::move(context)),
        index_(std::move(index)) {}

  size_t StoredSizeMax(size_t raw_size) const override { return raw_size + 1; }

  std::unique_ptr<Scratch> NewScratch() const override {
    return std::make_unique<PaperScratch>(NewForm());
  }

  size_t MemoryBytes() const override {
    return sizeof(*this) + (index_ == nullptr ? 0 : index_->MemoryBytes());
  }

  absl::Status Decode(ByteView stored, MutableByteView raw,
                      Scratch& scratch) const override {
    return DecodeRange(stored, raw.size(), 0, raw, scratch);
  }

  absl::Status DecodeRange(ByteView stored, size_t raw_size, size_t offset,
                           MutableByteView out,
                           Scratch& scratch) const override {
    QUIRE_CHECK(offset <= raw_size && out.size() <= raw_size - offset);
    if (!stored.empty() && stored.front() == kTextFollows) {
      const ByteView text = stored.subspan(1);
      if (text.size() != raw_size) {
        return WrongSize(stored, text.size(), raw_size);
      }
      std::ranges::copy(text.subspan(offset, out.size()), out.begin());
      return absl::OkStatus();
    }
    const absl::Status status = static_cast<PaperScratch&>(scratch).form->Read(
        stored, AsBytes(context_->dictionary), raw_size, offset, out);
    return status.ok() ? status : Damaged(stored, status.message());
  }

 protected:
  absl::StatusOr<size_t> EncodeBlock(ByteView raw, MutableByteView stored,
                                     Scratch& scratch) const override {
    auto& own = static_cast<PaperScratch&>(scratch);
    FactoriseGreedily(*index_, raw, own.factors);
    QUIRE_ASSIGN_OR_RETURN(const ByteView form,
                           own.form->Write(raw, own.factors));
    if (form.size() <= raw.size()) {
      std::ranges::copy(form, stored.begin());
      return form.size();
    }
    stored.front() = kTextFollows;
    std::ranges::copy(raw, stored.begin() + 1);
    return raw.size() + 1;
  }

 private:
  struct PaperScratch final : public Scratch {
    explicit PaperScratch(std::unique_ptr<FactorForm> own_form)
        : form(std::move(own_form)) {}

    FactorList factors;
    const std::unique_ptr<FactorForm> form;
  };

  std::unique_ptr<FactorForm> NewForm() const {
    const size_t dictionary_size = context_->dictionary.size();
    switch (info().id) {
      case CodecId::kRlzUv:
        return std::make_unique<FixedForm>(32);
      case CodecId::kRlzPv:
        return std::make_unique<FixedForm>(PackedOffsetBits(dictionary_size));
      case CodecId::kRlzZzz:
        return std::make_unique<ZzzForm>(level_, dictionary_size);
      default:
        QUIRE_CHECK(info().id == CodecId::kRlzZz);
        return std::make_unique<ZzForm>(level_);
    }
  }

  const int level_;
  const std::shared_ptr<const CodecContext> context_;
  // Index of the context's dictionary.
  const std::unique_ptr<const SuffixIndex> index_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BlockCodec>> MakePaperCodec(
    const CodecInfo& info, int level,
    std::shared_ptr<const CodecContext> context, CodecUse use) {
  const ByteView dictionary = AsBytes(context->dictionary);
  std::unique_ptr<const SuffixIndex> index;
  if (use != CodecUse::kDecode) {
    QUIRE_ASSIGN_OR_RETURN(index, SuffixIndex::Build(dictionary));
  }
  return std::make_unique<PaperCodec>(info, level, std::move(context), use,
                                      std::move(index));
}

}  // namespace quire
