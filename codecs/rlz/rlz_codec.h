// SPDX-License-Identifier: Apache-2.0
//
// Quire's own codec: relative Lempel-Ziv ("Access Time Tradeoffs in Archive
// Compression", section 2) that also copies from the block's own past, in the
// form of Zstandard.
//
// A stored block is one Zstandard frame (RFC 8878) with its content size and
// without checksum and dictionary number, to be decoded with the archive's
// dictionary as raw content: ZSTD_DCtx_loadDictionary_advanced() with
// ZSTD_dct_rawContent, or what other libraries call it. No decoder of our own
// is needed, in any language; all that is ours is the choice of copies.
#ifndef QUIRE_CODECS_RLZ_RLZ_CODEC_H_
#define QUIRE_CODECS_RLZ_RLZ_CODEC_H_

#include <memory>

#include "absl/status/statusor.h"

#include "codecs/block_codec.h"

namespace quire {

enum class RlzLevel {
  // The first good copy is taken, the block's own past is hardly searched.
  kFast = 1,
  // A copy is taken unless a better one begins right after it.
  kDefault = 2,
  // The cheapest of all parses by the block's own statistics, or nearly: nearer
  // for blocks up to 16 KiB, which take twice the time.
  kMax = 3,
};

// `info` is the codec's entry in the registry.
// The dictionary may be empty. For encoding its index takes 5 bytes for each
// byte of it; scratch, some 30 bytes for each byte of the largest block.
// REQUIRES: context != nullptr, its dictionary is not larger than
//           kDictionarySizeBytesMax.
absl::StatusOr<std::unique_ptr<BlockCodec>> MakeRlzCodec(
    const CodecInfo& info, RlzLevel level,
    std::shared_ptr<const CodecContext> context, CodecUse use);

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_RLZ_CODEC_H_
