// SPDX-License-Identifier: Apache-2.0
//
// Codecs that compress each block by itself with a well-known library, and the
// one that does not compress: the baselines of "Access Time Tradeoffs in
// Archive Compression", section 3. What they store is exactly the library's own
// block form, so that any implementation of it, in any language, decodes it
// when told the block's size:
//   copy  the text
//   lz4   an LZ4 block (no frame)
//   xz    a raw LZMA2 stream whose history is the largest block
//   zlib  a raw DEFLATE stream, RFC 1951 (no zlib or gzip header)
//   zstd  one Zstandard frame, RFC 8878, without content size, checksum and
//         dictionary number
// Headers and checksums of the libraries' own are left out because the archive
// knows the sizes and guards each block already.
#ifndef QUIRE_CODECS_BLOCK_LIBRARY_CODECS_H_
#define QUIRE_CODECS_BLOCK_LIBRARY_CODECS_H_

#include <memory>

#include "codecs/block_codec.h"

namespace quire {

// `info` is the codec's entry in the registry.
// REQUIRES: info.level_min <= level <= info.level_max.

std::unique_ptr<BlockCodec> MakeCopyCodec(const CodecInfo& info, CodecUse use);

// Levels 1 and 2 are LZ4's fast compressor, 3 to 12 its
// high-compression one at that level: the meaning the lz4 tool gives them. A
// range is decoded up to its end only. LZ4's decoder does not notice a match
// distance of zero, which no encoder writes: the bytes of such a match are
// unspecified. Damage of this kind is found by the checksum that guards the
// block, not here.
std::unique_ptr<BlockCodec> MakeLz4Codec(const CodecInfo& info, int level,
                                         CodecUse use);

// LZ4's fast compressor at the acceleration `level`; decodes as the above.
std::unique_ptr<BlockCodec> MakeLz4FastCodec(const CodecInfo& info, int level,
                                             CodecUse use);

// `level` is liblzma's preset. A range is decoded up to its end only.
std::unique_ptr<BlockCodec> MakeXzCodec(const CodecInfo& info, int level,
                                        CodecUse use);

// A range is decoded up to its end only.
std::unique_ptr<BlockCodec> MakeZlibCodec(const CodecInfo& info, int level,
                                          CodecUse use);

// A range is decoded up to its end only.
std::unique_ptr<BlockCodec> MakeZstdCodec(const CodecInfo& info, int level,
                                          CodecUse use);

}  // namespace quire

#endif  // QUIRE_CODECS_BLOCK_LIBRARY_CODECS_H_
