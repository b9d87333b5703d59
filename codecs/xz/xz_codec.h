// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_XZ_XZ_CODEC_H_
#define QUIRE_CODECS_XZ_XZ_CODEC_H_

#include <memory>

#include "codecs/block_codec.h"

namespace quire {

// Stores a raw LZMA2 stream, without the container of .xz files. The history is
// that of the largest block at every level, so that decoders need one number
// and some 1.1 MiB. A range is decoded up to its end only.
//
// `info` is the codec's entry in the registry; `level` is liblzma's preset.
// REQUIRES: info.level_min <= level <= info.level_max.
std::unique_ptr<BlockCodec> MakeXzCodec(const CodecInfo& info, int level,
                                        CodecUse use);

}  // namespace quire

#endif  // QUIRE_CODECS_XZ_XZ_CODEC_H_
