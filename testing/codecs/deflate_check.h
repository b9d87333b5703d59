// SPDX-License-Identifier: Apache-2.0
//
// zlib's own calls, for tests and fuzzing only. Our use of zlib and our decoder
// are compared with them.
#ifndef QUIRE_TESTING_CODECS_DEFLATE_CHECK_H_
#define QUIRE_TESTING_CODECS_DEFLATE_CHECK_H_

#include <cstddef>
#include <string>

#include "codecs/base/bytes.h"

namespace quire {

// Returns a raw DEFLATE stream (RFC 1951) of zlib's `level`, 0 to 9, and
// `strategy`, by default Z_DEFAULT_STRATEGY. Matches may reach back into
// `dictionary`. Aborts if zlib refuses.
std::string RawDeflate(const std::string& text,
                       const std::string& dictionary = "", int level = 9,
                       int strategy = 0);

// Decodes `stored` with both, to an output buffer of `output_size` bytes, once
// in one call and once in steps of `step` bytes. Returns the difference: in
// whether the stream is accepted as one of `output_size` bytes or fewer, or in
// its text; empty if there is none. Some bytes past the text are decoded, too:
// an error there, and only there, may be reported by only one of the two.
std::string DifferenceToZlib(ByteView stored, ByteView dictionary,
                             size_t output_size, size_t step);

}  // namespace quire

#endif  // QUIRE_TESTING_CODECS_DEFLATE_CHECK_H_
