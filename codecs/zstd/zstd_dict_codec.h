// SPDX-License-Identifier: Apache-2.0
//
// zstd with the archive's dictionary: what a modern general compressor makes of
// the idea behind relative Lempel-Ziv, and the measure of Quire's own codecs of
// that family.
//
// A stored block is one zstd frame (RFC 8878) without content size, checksum
// and dictionary number, whose matches may reach back into the dictionary as
// raw content. Any zstd library decodes it when given the dictionary as a
// prefix or as raw content.
#ifndef QUIRE_CODECS_ZSTD_ZSTD_DICT_CODEC_H_
#define QUIRE_CODECS_ZSTD_ZSTD_DICT_CODEC_H_

#include <memory>

#include "absl/status/statusor.h"

#include "codecs/block_codec.h"

namespace quire {

// `info` is the codec's entry in the registry; `level` is libzstd's, with its
// tables enlarged so that all of the dictionary is searched. Made for encoding
// it holds 4 to 12 bytes per byte of a dictionary whose size is a power of two,
// up to twice as many for others.
//
// libzstd 1.5 can search only 16 MiB by the methods of levels 1 to 4: there,
// larger dictionaries are searched as at level 5.
// REQUIRES: info.level_min <= level <= info.level_max, context != nullptr.
// Errors (made for encoding only):
//         ResourceExhausted  not enough memory for the tables.
//         Internal           libzstd refused a parameter.
absl::StatusOr<std::unique_ptr<BlockCodec>> MakeZstdDictCodec(
    const CodecInfo& info, int level,
    std::shared_ptr<const CodecContext> context, CodecUse use);

}  // namespace quire

#endif  // QUIRE_CODECS_ZSTD_ZSTD_DICT_CODEC_H_
