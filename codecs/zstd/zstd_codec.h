// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_ZSTD_ZSTD_CODEC_H_
#define QUIRE_CODECS_ZSTD_ZSTD_CODEC_H_

#include <memory>

#include "codecs/block_codec.h"

namespace quire {

// Stores one zstd frame (RFC 8878) without content size, checksum and
// dictionary number. Ranges are decoded up to their end only.
//
// `info` is the codec's entry in the registry.
// REQUIRES: info.level_min <= level <= info.level_max.
std::unique_ptr<BlockCodec> MakeZstdCodec(const CodecInfo& info, int level,
                                          CodecUse use);

}  // namespace quire

#endif  // QUIRE_CODECS_ZSTD_ZSTD_CODEC_H_
