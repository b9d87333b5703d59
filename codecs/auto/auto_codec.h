// SPDX-License-Identifier: Apache-2.0
//
// The codec that chooses another codec for each block.
//
//   payload: u8 the member's CodecId; the rest: a payload of that codec
//
// Probes a block first (block_probe.h), tries at most three suitable members
// besides copy, and stores the one of least cost (member_choice.h). Members are
// those of member_choice.h, which do not include `auto` itself.
#ifndef QUIRE_CODECS_AUTO_AUTO_CODEC_H_
#define QUIRE_CODECS_AUTO_AUTO_CODEC_H_

#include <array>
#include <memory>

#include "absl/status/statusor.h"

#include "codecs/auto/member_choice.h"
#include "codecs/base/bytes.h"
#include "codecs/block_codec.h"

namespace quire {

using AutoMemberCodecs =
    std::array<std::unique_ptr<const BlockCodec>, kAutoMemberCount>;

// `info` is the codec's entry in the registry, `members` the codecs of
// AutoMembers(objective), in their order, made for `use`. The members use the
// dictionary of `context`.
std::unique_ptr<BlockCodec> MakeAutoCodec(
    const CodecInfo& info, AutoObjective objective, AutoMemberCodecs members,
    std::shared_ptr<const CodecContext> context, CodecUse use);

// Returns the codec of a payload of `auto`. Errors: DataLoss  the payload is
// empty, or there is no such member.
absl::StatusOr<CodecId> AutoMemberOf(ByteView stored);

}  // namespace quire

#endif  // QUIRE_CODECS_AUTO_AUTO_CODEC_H_
