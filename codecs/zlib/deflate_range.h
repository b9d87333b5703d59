// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_ZLIB_DEFLATE_RANGE_H_
#define QUIRE_CODECS_ZLIB_DEFLATE_RANGE_H_

#include <cstddef>

#include "absl/status/status.h"

#include "codecs/base/bytes.h"
#include "codecs/block_codec.h"
#include "codecs/zlib/deflate_decoder.h"

namespace quire {

// Decodes bytes [offset, offset + out.size()) of a block of `raw_size` bytes
// that is one DEFLATE stream, primed with `dictionary`; up to the range's end
// only. If that is the block's, the stream must be all of `stored`, and end
// there, as `ending` says. `scratch` may be the one that `decoder` belongs to.
// REQUIRES: offset + out.size() <= raw_size.
// Errors: DataLoss  malformed, or not that long.
absl::Status DecodeDeflateRange(
    ByteView stored, ByteView dictionary, size_t raw_size, size_t offset,
    MutableByteView out, DeflateDecoder& decoder, BlockCodec::Scratch& scratch,
    DeflateEnding ending = DeflateEnding::kFinalBlock);

}  // namespace quire

#endif  // QUIRE_CODECS_ZLIB_DEFLATE_RANGE_H_
