// SPDX-License-Identifier: Apache-2.0
//
// From a codec's number to its implementation: the one place that knows all
// subdirectories. What is known of a codec without making one is in
// block_codec.cc.
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "codecs/auto/auto_codec.h"
#include "codecs/base/status_macros.h"
#include "codecs/block_codec.h"
#include "codecs/codec_factories.h"
#include "codecs/fsst/block/fsst_codec.h"
#include "codecs/rlz/dictionary_builder.h"
#include "codecs/rlz/rlz_codec.h"

namespace quire {
namespace {

absl::StatusOr<std::unique_ptr<BlockCodec>> MakeAuto(
    const CodecInfo& info, int level,
    const std::shared_ptr<const CodecContext>& context, CodecUse use) {
  const auto objective = static_cast<AutoObjective>(level);
  AutoMemberCodecs members;
  for (size_t i = 0; i < kAutoMemberCount; ++i) {
    QUIRE_ASSIGN_OR_RETURN(
        members[i],
        MakeBlockCodec(AutoMembers(objective)[i].spec, context, use));
  }
  return MakeAutoCodec(info, objective, std::move(members), context, use);
}

}  // namespace

absl::StatusOr<std::unique_ptr<BlockCodec>> MakeBlockCodec(
    const CodecSpec& spec, std::shared_ptr<const CodecContext> context,
    CodecUse use) {
  const CodecInfo* const info = FindCodec(spec.id);
  if (info == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("this program knows no codec with the number ",
                     static_cast<uint32_t>(spec.id),
                     "; a newer version may have written the archive"));
  }
  if (spec.level < info->level_min || spec.level > info->level_max) {
    return absl::InvalidArgumentError(absl::StrCat(
        "codec ", info->name, " has no level ", spec.level, "; its levels are ",
        info->level_min, " to ", info->level_max));
  }
  if (info->needs_dictionary && context == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("codec ", info->name, " needs a dictionary"));
  }
  if (info->needs_symbol_table &&
      (context == nullptr || context->symbol_table.empty())) {
    return absl::InvalidArgumentError(
        absl::StrCat("codec ", info->name, " needs a symbol table"));
  }
  if (info->needs_dictionary &&
      context->dictionary.size() > kDictionarySizeBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("codec ", info->name, " cannot use a dictionary of ",
                     context->dictionary.size(), " bytes; the limit is ",
                     kDictionarySizeBytesMax));
  }
  switch (spec.id) {
    case CodecId::kCopy:
      return MakeCopyCodec(*info, use);
    case CodecId::kLz4:
      return MakeLz4Codec(*info, spec.level, use);
    case CodecId::kXz:
      return MakeXzCodec(*info, spec.level, use);
    case CodecId::kNumeric:
      return MakeNumericCodec(*info, spec.level, use);
    case CodecId::kAuto:
      return MakeAuto(*info, spec.level, context, use);
    case CodecId::kZlib:
      return MakeZlibCodec(*info, spec.level, use);
    case CodecId::kZstd:
      return MakeZstdCodec(*info, spec.level, use);
    case CodecId::kRlzUv:
    case CodecId::kRlzPv:
    case CodecId::kRlzZz:
    case CodecId::kRlzZzz:
      return MakePaperCodec(*info, spec.level, std::move(context), use);
    case CodecId::kZlibPrimed:
      return MakeZlibPrimedCodec(*info, spec.level, std::move(context), use);
    case CodecId::kRlz:
      return MakeRlzCodec(*info, static_cast<RlzLevel>(spec.level),
                          std::move(context), use);
    case CodecId::kFsst:
      return MakeFsstCodec(*info, static_cast<FsstCodecLevel>(spec.level),
                           context, use);
    default:
      break;
  }
  return absl::InternalError(
      absl::StrCat("codec ", info->name, " is registered but not built"));
}

}  // namespace quire
