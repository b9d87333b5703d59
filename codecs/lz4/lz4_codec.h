// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_LZ4_LZ4_CODEC_H_
#define QUIRE_CODECS_LZ4_LZ4_CODEC_H_

#include <memory>

#include "codecs/block_codec.h"

namespace quire {

// Stores an LZ4 block without a frame. Levels up to 2 are LZ4's fast
// compressor, negative ones at the acceleration -level; 3 to 12 are its high
// compression. A range is decoded up to its end only.
//
// The decoder never leaves its buffers, but does not notice a match distance of
// zero, which no encoder writes: the bytes of such a match are unspecified, but
// depend on `stored` and the range alone, not on earlier contents of memory.
// Damage of this kind is found by the checksum that guards the block.
//
// `info` is the codec's entry in the registry.
// REQUIRES: info.level_min <= level <= info.level_max.
std::unique_ptr<BlockCodec> MakeLz4Codec(const CodecInfo& info, int level,
                                         CodecUse use);

}  // namespace quire

#endif  // QUIRE_CODECS_LZ4_LZ4_CODEC_H_
