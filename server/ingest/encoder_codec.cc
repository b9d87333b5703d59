// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/encoder_codec.h"

#include <new>
#include <utility>

#include "absl/status/status.h"

#include "codecs/automatic/auto_codec.h"
#include "codecs/base/status_macros.h"
#include "codecs/inflate/inflating_codec.h"

namespace quire {
namespace {

using Made = absl::StatusOr<std::unique_ptr<BlockCodec>>;

Made MakeInflating(const CodecInfo& info, const BuildOptions& options,
                   const std::shared_ptr<const CodecContext>& context) {
  CodecSpec spec = options.archive.codec;
  spec.id = info.text_codec;
  QUIRE_ASSIGN_OR_RETURN(
      std::unique_ptr<BlockCodec> text_codec,
      MakeBlockCodec(spec, context, CodecUse::kEncodeAndDecode));
  return MakeInflatingCodec(info, std::move(text_codec),
                            CodecUse::kEncodeAndDecode,
                            options.inflate_member_size_bytes_max);
}

Made MakeAuto(const CodecInfo& info, AutoObjective objective,
              const AutoSpeeds& speeds,
              const std::shared_ptr<const CodecContext>& context) {
  AutoMemberCodecs members;
  for (size_t i = 0; i < kAutoMemberCount; ++i) {
    QUIRE_ASSIGN_OR_RETURN(
        members[i], MakeBlockCodec(AutoMembers(objective)[i].spec, context,
                                   CodecUse::kEncodeAndDecode));
  }
  try {
    return MakeAutoCodec(info, objective, speeds, std::move(members), context,
                         CodecUse::kEncodeAndDecode);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "not enough memory to look for the text of blocks in the dictionary");
  }
}

}  // namespace

Made MakeEncoder(const BuildOptions& options,
                 const std::shared_ptr<const CodecContext>& context) {
  const CodecSpec& spec = options.archive.codec;
  const CodecInfo* const info = FindCodec(spec.id);
  if (info != nullptr && info->inflates()) {
    return MakeInflating(*info, options, context);
  }
  if (info != nullptr && info->id == CodecId::kAuto &&
      options.auto_speeds.has_value()) {
    return MakeAuto(*info, static_cast<AutoObjective>(spec.level),
                    *options.auto_speeds, context);
  }
  return MakeBlockCodec(spec, context, CodecUse::kEncodeAndDecode);
}

}  // namespace quire
