// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/rlz_codec.h"

#include <utility>

#include "codecs/base/memory/huge_pages.h"
#include "codecs/base/status_macros.h"
#include "codecs/rlz/parse/dictionary_index.h"
#include "codecs/rlz/parse/lazy_parser.h"
#include "codecs/rlz/parse/optimal_parser.h"
#include "codecs/rlz/parse/sequence_writer.h"
#include "codecs/zstd/zstd_frame_codec.h"

namespace quire {
namespace {

// Level max parses blocks up to this size with all the effort that pays: they
// are chosen for quick access, which costs size.
constexpr size_t kSmallBlockSizeBytes = 16 << 10;

OptimalParserOptions ThoroughOptions() {
  return {.finder = {.chain_depth_max = 32,
                     .long_key_stride = 1,
                     .good_length = 200,
                     .long_length = 200,
                     .longest_length = 400},
          .rounds = 3,
          .long_length = 80,
          .cut_length_max = 64,
          .settled_after = 200};
}

constexpr LazyParserOptions kFastOptions = {.chain_depth_max = 16};
// A greedy parse is enough to compare sizes.
constexpr LazyParserOptions kTrialOptions = {.chain_depth_max = 2,
                                             .lookahead = 0};

std::unique_ptr<Parser> MakeParser(RlzLevel level, CodecUse use, bool small) {
  switch (level) {
    case RlzLevel::kFast:
      return std::make_unique<LazyParser>(
          use == CodecUse::kTrial ? kTrialOptions : kFastOptions);
    case RlzLevel::kDefault:
      return std::make_unique<LazyParser>(LazyParserOptions());
    case RlzLevel::kMax:
      break;
  }
  return std::make_unique<OptimalParser>(small ? ThoroughOptions()
                                               : OptimalParserOptions());
}

class RlzCodec final : public ZstdFrameCodec {
 public:
  // `index` is null for decoding.
  RlzCodec(const CodecInfo& info, RlzLevel level,
           std::shared_ptr<const CodecContext> context, CodecUse use,
           std::unique_ptr<const DictionaryIndex> index)
      : ZstdFrameCodec(info, use, std::move(context)),
        level_(level),
        use_(use),
        index_(std::move(index)) {}

  size_t StoredSizeMax(size_t raw_size) const override {
    return SequenceWriter::StoredSizeMax(raw_size);
  }

  std::unique_ptr<Scratch> NewScratch() const override {
    return std::make_unique<RlzScratch>();
  }

  size_t MemoryBytes() const override {
    return sizeof(*this) + (index_ == nullptr ? 0 : index_->MemoryBytes());
  }

 protected:
  absl::StatusOr<size_t> EncodeBlock(ByteView raw, MutableByteView stored,
                                     Scratch& scratch) const override {
    auto& own = static_cast<RlzScratch&>(scratch);
    const bool small =
        level_ == RlzLevel::kMax && raw.size() <= kSmallBlockSizeBytes;
    std::unique_ptr<Parser>& parser =
        small ? own.small_block_parser : own.parser;
    if (parser == nullptr) {
      parser = MakeParser(level_, use_, small);
    }
    parser->Parse(*index_, BlockText(dictionary(), raw),
                  kFrameBlockSizeBytesMax, own.sequences);
    return own.writer.Write(raw, own.sequences, stored);
  }

 private:
  struct RlzScratch final : public FrameScratch {
    // Made on first use: decoding needs none.
    std::unique_ptr<Parser> parser;
    std::unique_ptr<Parser> small_block_parser;
    SequenceList sequences;
    SequenceWriter writer;
  };

  const RlzLevel level_;
  const CodecUse use_;
  // Index of the context's dictionary.
  const std::unique_ptr<const DictionaryIndex> index_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BlockCodec>> MakeRlzCodec(
    const CodecInfo& info, RlzLevel level,
    std::shared_ptr<const CodecContext> context, CodecUse use) {
  const ByteView dictionary = AsBytes(context->dictionary);
  std::unique_ptr<const DictionaryIndex> index;
  if (use != CodecUse::kDecode) {
    PreferHugePages(dictionary);
    QUIRE_ASSIGN_OR_RETURN(
        index, DictionaryIndex::Build(dictionary,
                                      level == RlzLevel::kMax
                                          ? DictionaryIndex::Detail::kFine
                                          : DictionaryIndex::Detail::kCoarse,
                                      context->workers.run));
  }
  return std::make_unique<RlzCodec>(info, level, std::move(context), use,
                                    std::move(index));
}

}  // namespace quire
