// SPDX-License-Identifier: Apache-2.0
//
// zlib's own calls, for tests and fuzzing only: what our use of it and our
// decoder are held against.
#ifndef QUIRE_CODECS_ZLIB_DEFLATE_CHECK_H_
#define QUIRE_CODECS_ZLIB_DEFLATE_CHECK_H_

#include <cstddef>
#include <string>

#include "codecs/base/bytes.h"

namespace quire {

// A raw DEFLATE stream (RFC 1951) at zlib's `level`, 0 to 9, and `strategy`, by
// default Z_DEFAULT_STRATEGY. Matches may reach back into `dictionary`. Aborts
// if zlib refuses.
std::string RawDeflate(const std::string& text,
                       const std::string& dictionary = "", int level = 9,
                       int strategy = 0);

// Decodes `stored` with both, to an output buffer of `output_size` bytes, once
// in one go and once in steps of `step` bytes. Returns what is different:
// whether the stream is taken as one of `output_size` bytes or fewer, and its
// text; empty if nothing is. Some bytes past the text are decoded, too: errors
// there, and only there, may be seen by one and not by the other.
std::string DifferenceToZlib(ByteView stored, ByteView dictionary,
                             size_t output_size, size_t step);

}  // namespace quire

#endif  // QUIRE_CODECS_ZLIB_DEFLATE_CHECK_H_
