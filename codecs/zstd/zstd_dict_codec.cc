// SPDX-License-Identifier: Apache-2.0
//
// Dictionaries by reference, of raw content, with parameters of their own, are
// in the experimental section of libzstd's header: hence the static library.
#define ZSTD_STATIC_LINKING_ONLY
#include "codecs/zstd/zstd_dict_codec.h"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "codecs/zstd/zstd_frame_codec.h"
#include "codecs/zstd/zstd_frame_writer.h"

namespace quire {
namespace {

struct FreeZstd {
  void operator()(ZSTD_CDict* dictionary) const { ZSTD_freeCDict(dictionary); }

  void operator()(ZSTD_CCtx_params* parameters) const {
    ZSTD_freeCCtxParams(parameters);
  }
};

using Tables = std::unique_ptr<ZSTD_CDict, FreeZstd>;

class ZstdDictCodec final : public ZstdFrameCodec {
 public:
  // `tables` is null if made for decoding, or if there is nothing to search.
  ZstdDictCodec(const CodecInfo& info, int level, CodecUse use,
                std::shared_ptr<const CodecContext> context, Tables tables)
      : ZstdFrameCodec(info, use, std::move(context)),
        level_(level),
        tables_(std::move(tables)) {}

  std::unique_ptr<Scratch> NewScratch() const override {
    return std::make_unique<ZstdDictScratch>(level_, tables_.get());
  }

  size_t MemoryBytes() const override {
    return sizeof(*this) + ZSTD_sizeof_CDict(tables_.get());
  }

 protected:
  absl::StatusOr<size_t> EncodeBlock(ByteView raw, MutableByteView stored,
                                     Scratch& scratch) const override {
    return static_cast<ZstdDictScratch&>(scratch).writer.Write(raw, stored);
  }

 private:
  struct ZstdDictScratch final : public FrameScratch {
    ZstdDictScratch(int level, const ZSTD_CDict* tables)
        : writer(level, tables) {}

    ZstdFrameWriter writer;
  };

  const int level_;
  // Of the context's dictionary.
  const Tables tables_;
};

// The level's parameters, with tables that hold every position of the
// dictionary.
ZSTD_compressionParameters ParametersFor(int level, size_t dictionary_size) {
  // What the tables of the two fastest methods can tell apart (in 1.5.4 and
  // later, which spend 8 of 32 bits on something else), but for two bytes: of a
  // dictionary of just this size the first two are not found.
  constexpr size_t kFastSizeMax = size_t{1} << 24;
  ZSTD_compressionParameters parameters =
      ZSTD_getCParams(level, ZSTD_CONTENTSIZE_UNKNOWN, dictionary_size);
  if (parameters.strategy <= ZSTD_dfast && dictionary_size > kFastSizeMax) {
    constexpr int kGreedyLevel = 5;
    parameters = ZSTD_getCParams(kGreedyLevel, ZSTD_CONTENTSIZE_UNKNOWN,
                                 dictionary_size);
  }
  const auto log = static_cast<unsigned>(std::bit_width(dictionary_size - 1));
  parameters.hashLog =
      std::clamp<unsigned>(log, ZSTD_HASHLOG_MIN, ZSTD_HASHLOG_MAX);
  // Binary trees have two entries for a position.
  const unsigned per_position_log = parameters.strategy >= ZSTD_btlazy2 ? 1 : 0;
  parameters.chainLog = std::clamp<unsigned>(
      log + per_position_log, ZSTD_CHAINLOG_MIN, ZSTD_CHAINLOG_MAX);
  return parameters;
}

absl::StatusOr<Tables> MakeTables(int level, ByteView dictionary) {
  const std::unique_ptr<ZSTD_CCtx_params, FreeZstd> all(
      ZSTD_createCCtxParams());
  if (all == nullptr) {
    return absl::ResourceExhaustedError("not enough memory for zstd");
  }
  const ZSTD_compressionParameters parameters =
      ParametersFor(level, dictionary.size());
  for (const auto& [parameter, value] :
       {std::pair{ZSTD_c_windowLog, parameters.windowLog},
        std::pair{ZSTD_c_hashLog, parameters.hashLog},
        std::pair{ZSTD_c_chainLog, parameters.chainLog},
        std::pair{ZSTD_c_searchLog, parameters.searchLog},
        std::pair{ZSTD_c_minMatch, parameters.minMatch},
        std::pair{ZSTD_c_targetLength, parameters.targetLength},
        std::pair{ZSTD_c_strategy, unsigned{parameters.strategy}}}) {
    const size_t result = ZSTD_CCtxParams_setParameter(all.get(), parameter,
                                                       static_cast<int>(value));
    if (ZSTD_isError(result)) {
      return absl::InternalError(absl::StrCat("zstd refused a parameter: ",
                                              ZSTD_getErrorName(result)));
    }
  }
  Tables tables(ZSTD_createCDict_advanced2(dictionary.data(), dictionary.size(),
                                           ZSTD_dlm_byRef, ZSTD_dct_rawContent,
                                           all.get(), ZSTD_customMem{}));
  if (tables == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("not enough memory for zstd's tables of a dictionary of ",
                     dictionary.size(), " bytes"));
  }
  return tables;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BlockCodec>> MakeZstdDictCodec(
    const CodecInfo& info, int level,
    std::shared_ptr<const CodecContext> context, CodecUse use) {
  Tables tables;
  if (use == CodecUse::kEncodeAndDecode && !context->dictionary.empty()) {
    QUIRE_ASSIGN_OR_RETURN(tables,
                           MakeTables(level, AsBytes(context->dictionary)));
  }
  return std::make_unique<ZstdDictCodec>(info, level, use, std::move(context),
                                         std::move(tables));
}

}  // namespace quire
