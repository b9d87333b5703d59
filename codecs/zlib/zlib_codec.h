// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_ZLIB_ZLIB_CODEC_H_
#define QUIRE_CODECS_ZLIB_ZLIB_CODEC_H_

#include <memory>

#include "codecs/block_codec.h"

namespace quire {

// Stores a raw DEFLATE stream (RFC 1951), without zlib's header and checksum. A
// range is decoded up to its end only.
//
// `info` is the codec's entry in the registry.
// REQUIRES: info.level_min <= level <= info.level_max.
std::unique_ptr<BlockCodec> MakeZlibCodec(const CodecInfo& info, int level,
                                          CodecUse use);

}  // namespace quire

#endif  // QUIRE_CODECS_ZLIB_ZLIB_CODEC_H_
