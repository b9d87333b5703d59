// SPDX-License-Identifier: Apache-2.0
//
// Arrays of numbers: each block is rearranged (byte_transform.h), then stored
// as one zstd frame. The codec takes the rearrangement, or none, that zstd
// makes smallest: text costs one byte more than with `zstd`.
//
//   payload: u8 t: bits 0 to 3 the TransformKind, bits 4 to 7 the binary
//            logarithm of the width; the rest: one zstd frame of the
//            rearranged block
#ifndef QUIRE_CODECS_NUMERIC_NUMERIC_CODEC_H_
#define QUIRE_CODECS_NUMERIC_NUMERIC_CODEC_H_

#include <memory>

#include "codecs/block_codec.h"

namespace quire {

// `info` is the codec's entry in the registry; `level` is zstd's.
// REQUIRES: info.level_min <= level <= info.level_max.
std::unique_ptr<BlockCodec> MakeNumericCodec(const CodecInfo& info, int level,
                                             CodecUse use);

}  // namespace quire

#endif  // QUIRE_CODECS_NUMERIC_NUMERIC_CODEC_H_
