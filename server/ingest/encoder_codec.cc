// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/encoder_codec.h"

#include <utility>

#include "absl/status/status.h"

#include "codecs/auto/auto_codec.h"
#include "codecs/base/status_macros.h"
#include "codecs/payload/payload_codec.h"

namespace quire {
namespace {

using Made = absl::StatusOr<std::unique_ptr<BlockCodec>>;

Made MakeAuto(const CodecInfo& info, AutoObjective objective,
              const AutoSpeeds& speeds,
              const std::shared_ptr<const CodecContext>& context) {
  AutoMemberCodecs members;
  for (size_t i = 0; i < kAutoMemberCount; ++i) {
    QUIRE_ASSIGN_OR_RETURN(
        members[i], MakeBlockCodec(AutoMembers(objective)[i].spec, context,
                                   CodecUse::kEncodeAndDecode));
  }
  return MakeAutoCodec(info, objective, speeds, std::move(members), context,
                       CodecUse::kEncodeAndDecode);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PayloadCodec>> MakeEncoder(
    const BuildOptions& options, bool inflates,
    const std::shared_ptr<const CodecContext>& context) {
  const CodecSpec& spec = options.archive.codec;
  const CodecInfo* const info = FindCodec(spec.id);
  const size_t inflated_text_size_max =
      inflates ? options.inflate_member_size_bytes_max : 0;
  if (info == nullptr || info->id != CodecId::kAuto ||
      !options.auto_speeds.has_value()) {
    return MakePayloadCodec(spec, context, CodecUse::kEncodeAndDecode,
                            inflated_text_size_max);
  }
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<BlockCodec> codec,
                         MakeAuto(*info, static_cast<AutoObjective>(spec.level),
                                  *options.auto_speeds, context));
  return MakePayloadCodec(std::move(codec), spec, inflated_text_size_max);
}

}  // namespace quire
