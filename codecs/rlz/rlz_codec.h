// SPDX-License-Identifier: Apache-2.0
//
// Quire's own codec: relative Lempel-Ziv ("Access Time Tradeoffs in Archive
// Compression", section 2) that also copies from the block's own past, in the
// format of Zstandard.
//
// A stored block is one Zstandard frame (RFC 8878) with its content size and
// without checksum and dictionary number. Decode it with the archive's
// dictionary as raw content: ZSTD_DCtx_loadDictionary_advanced() with
// ZSTD_dct_rawContent, or the equivalent in other libraries. No language needs
// a decoder of our own; only the choice of copies is ours.
#ifndef QUIRE_CODECS_RLZ_RLZ_CODEC_H_
#define QUIRE_CODECS_RLZ_RLZ_CODEC_H_

#include <memory>

#include "absl/status/statusor.h"

#include "codecs/block_codec.h"

namespace quire {

enum class RlzLevel {
  // As kDefault, but searches less of the block's own past. In a trial it takes
  // the first good copy.
  kFast = 1,
  // Takes a copy unless a better one begins right after it.
  kDefault = 2,
  // Takes the cheapest parse by the block's own statistics, or nearly so. Comes
  // closer for blocks up to 16 KiB, at twice the time.
  kMax = 3,
};

// `info` is the codec's entry in the registry. The dictionary may be empty. For
// encoding, its index takes 5 bytes per byte of dictionary, 9 at level max, and
// scratch about 30 bytes per byte of the largest block, 100 at level max.
// REQUIRES: context != nullptr, its dictionary is not larger than
//           kDictionarySizeBytesMax.
absl::StatusOr<std::unique_ptr<BlockCodec>> MakeRlzCodec(
    const CodecInfo& info, RlzLevel level,
    std::shared_ptr<const CodecContext> context, CodecUse use);

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_RLZ_CODEC_H_
