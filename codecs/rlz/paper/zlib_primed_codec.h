// SPDX-License-Identifier: Apache-2.0
//
// ZLIB' of "Access Time Tradeoffs in Archive Compression", section 5: zlib,
// block by block, each primed with text of the dictionary.
//
//   window       varint: where in the dictionary the text begins; it has 32768
//                bytes, or ends with the dictionary
//   text         raw DEFLATE stream, whose matches may reach into the window
#ifndef QUIRE_CODECS_RLZ_PAPER_ZLIB_PRIMED_CODEC_H_
#define QUIRE_CODECS_RLZ_PAPER_ZLIB_PRIMED_CODEC_H_

#include <memory>

#include "codecs/block_codec.h"

namespace quire {

// `info` is the codec's entry in the registry; `level` is zlib's, 1 to 9. A
// range is decoded up to its end only.
//
// An empty dictionary is allowed. For encoding, the codec holds about one byte
// per byte of the dictionary.
// REQUIRES: context != nullptr, its dictionary is not larger than
//           kDictionarySizeBytesMax.
std::unique_ptr<BlockCodec> MakeZlibPrimedCodec(
    const CodecInfo& info, int level,
    std::shared_ptr<const CodecContext> context, CodecUse use);

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PAPER_ZLIB_PRIMED_CODEC_H_
