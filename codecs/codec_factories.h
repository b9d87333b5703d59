// SPDX-License-Identifier: Apache-2.0
//
// Makes the codecs that need nothing but the registry's entry, a level and, for
// some, a dictionary; each in the directory of its name. Internal to codecs/:
// others call MakeBlockCodec() (block_codec.h). `info` is the codec's entry in
// the registry. `level` is one of those that the entry allows.
#ifndef QUIRE_CODECS_CODEC_FACTORIES_H_
#define QUIRE_CODECS_CODEC_FACTORIES_H_

#include <memory>

#include "absl/status/statusor.h"

#include "codecs/block_codec.h"

namespace quire {

// Stores the text.
std::unique_ptr<BlockCodec> MakeCopyCodec(const CodecInfo& info, CodecUse use);

// Stores an LZ4 block without a frame. Levels up to 2 are LZ4's fast
// compressor, negative ones at the acceleration -level; 3 to 12 are its high
// compression. A range is decoded up to its end only.
//
// The decoder never leaves its buffers, but does not notice a match distance of
// zero, which no encoder writes: the bytes of such a match are unspecified, but
// depend on `stored` and the range alone, not on earlier contents of memory.
// Damage of this kind is found by the checksum that guards the block.
std::unique_ptr<BlockCodec> MakeLz4Codec(const CodecInfo& info, int level,
                                         CodecUse use);

// Stores a raw LZMA2 stream, without the container of .xz files. The history is
// that of the largest block at every level, so that decoders need one number
// and some 1.1 MiB. A range is decoded up to its end only. `level` is liblzma's
// preset.
std::unique_ptr<BlockCodec> MakeXzCodec(const CodecInfo& info, int level,
                                        CodecUse use);

// Stores a raw DEFLATE stream (RFC 1951), without zlib's header and checksum. A
// range is decoded up to its end only.
std::unique_ptr<BlockCodec> MakeZlibCodec(const CodecInfo& info, int level,
                                          CodecUse use);

// Stores one zstd frame (RFC 8878) without content size, checksum and
// dictionary number. Ranges are decoded up to their end only.
std::unique_ptr<BlockCodec> MakeZstdCodec(const CodecInfo& info, int level,
                                          CodecUse use);

// Arrays of numbers: each block is rearranged (byte_transform.h), then stored
// as one zstd frame. The codec takes the rearrangement, or none, that zstd
// makes smallest: text costs one byte more than with `zstd`. `level` is zstd's.
std::unique_ptr<BlockCodec> MakeNumericCodec(const CodecInfo& info, int level,
                                             CodecUse use);

// The codecs of "Access Time Tradeoffs in Archive Compression", sections 4 and
// 5: greedy factors against the dictionary, block by block, and one of several
// forms to store them in (factor_form.h):
//   rlz-uv   offsets of 32 bits, lengths as varints
//   rlz-pv   offsets of ceil(log2 |dictionary|) bits
//   rlz-zz   offsets and lengths by zlib
//   rlz-zzz  short factors as literals, by zlib, too
// `info` must be one of these; `level` is zlib's, 1 to 9, where the form has
// streams of it. A range is decoded from the block's first factor to the
// range's last; only the range's own text is copied. An empty dictionary is
// allowed, and makes all bytes literals.
// REQUIRES: context != nullptr, its dictionary is not larger than
//           kDictionarySizeBytesMax.
absl::StatusOr<std::unique_ptr<BlockCodec>> MakePaperCodec(
    const CodecInfo& info, int level,
    std::shared_ptr<const CodecContext> context, CodecUse use);

// ZLIB' of "Access Time Tradeoffs in Archive Compression", section 5: zlib,
// block by block, each primed with text of the dictionary. `level` is zlib's, 1
// to 9. A range is decoded up to its end only. An empty dictionary is allowed.
// For encoding, the codec holds about one byte per byte of the dictionary.
// REQUIRES: context != nullptr, its dictionary is not larger than
//           kDictionarySizeBytesMax.
std::unique_ptr<BlockCodec> MakeZlibPrimedCodec(
    const CodecInfo& info, int level,
    std::shared_ptr<const CodecContext> context, CodecUse use);

}  // namespace quire

#endif  // QUIRE_CODECS_CODEC_FACTORIES_H_
