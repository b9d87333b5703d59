// SPDX-License-Identifier: Apache-2.0
//
// RLZ-ZZ of "Access Time Tradeoffs in Archive Compression", section 4: greedy
// factors, offsets and lengths each compressed by zlib, block by block.
//
// A stored block is either the factor streams of factor_streams.h, or, where
// these would be no smaller, one byte 00 and the text. (Factor streams never
// begin with 00: there is at least one factor.)
#ifndef QUIRE_CODECS_RLZ_RLZ_ZZ_CODEC_H_
#define QUIRE_CODECS_RLZ_RLZ_ZZ_CODEC_H_

#include <memory>

#include "absl/status/statusor.h"

#include "codecs/block_codec.h"

namespace quire {

// `info` is the codec's entry in the registry; `level` is zlib's, 1 to 9.
// A range is decoded from the block's first factor to the range's last; only
// the range's own text is copied.
//
// An empty dictionary is allowed, and makes all bytes literals.
// REQUIRES: context != nullptr.
// Errors: InvalidArgument    dictionary too large.
//         ResourceExhausted  not enough memory for its index (encoding only).
absl::StatusOr<std::unique_ptr<BlockCodec>> MakeRlzZzCodec(
    const CodecInfo& info, int level,
    std::shared_ptr<const CodecContext> context, CodecUse use);

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_RLZ_ZZ_CODEC_H_
