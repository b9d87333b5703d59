// SPDX-License-Identifier: Apache-2.0
//
// The codecs of "Access Time Tradeoffs in Archive Compression", sections 4 and
// 5: greedy factors against the dictionary, block by block, and one of several
// forms to store them in:
//   rlz-uv   offsets of 32 bits, lengths as varints       fixed_form.h
//   rlz-pv   offsets of ceil(log2 |dictionary|) bits      fixed_form.h
//   rlz-zz   offsets and lengths by zlib                  zz_form.h
//   rlz-zzz  short factors as literals, by zlib, too      zzz_form.h
//
// A stored block is either that form, or, where it would be larger than the
// text, one byte 00 and the text.
#ifndef QUIRE_CODECS_RLZ_PAPER_PAPER_CODEC_H_
#define QUIRE_CODECS_RLZ_PAPER_PAPER_CODEC_H_

#include <memory>

#include "absl/status/statusor.h"

#include "codecs/block_codec.h"

namespace quire {

// `info` is the codec's entry in the registry, which must be one of the above;
// `level` is zlib's, 1 to 9, where the form has streams of it.
// A range is decoded from the block's first factor to the range's last; only
// the range's own text is copied.
//
// An empty dictionary is allowed, and makes all bytes literals.
// REQUIRES: context != nullptr, its dictionary is not larger than
//           kDictionarySizeBytesMax.
absl::StatusOr<std::unique_ptr<BlockCodec>> MakePaperCodec(
    const CodecInfo& info, int level,
    std::shared_ptr<const CodecContext> context, CodecUse use);

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PAPER_PAPER_CODEC_H_
