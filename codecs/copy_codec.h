// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_COPY_CODEC_H_
#define QUIRE_CODECS_COPY_CODEC_H_

#include <memory>

#include "codecs/block_codec.h"

namespace quire {

// Stores the text. `info` is the codec's entry in the registry.
std::unique_ptr<BlockCodec> MakeCopyCodec(const CodecInfo& info, CodecUse use);

}  // namespace quire

#endif  // QUIRE_CODECS_COPY_CODEC_H_
