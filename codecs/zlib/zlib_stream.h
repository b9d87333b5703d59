// SPDX-License-Identifier: Apache-2.0
//
// zlib's compressor of raw DEFLATE streams (RFC 1951), made once and used for
// many short streams without allocating again. deflate_decoder.h decodes them.
#ifndef QUIRE_CODECS_ZLIB_ZLIB_STREAM_H_
#define QUIRE_CODECS_ZLIB_ZLIB_STREAM_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"

struct z_stream_s;

namespace quire {

// Ending of a DEFLATE stream or of a piece of one.
enum class DeflateEnding {
  // With its final block: the stream is complete.
  kFinalBlock,
  // With zlib's full flush: an empty stored block (RFC 1951, section 3.2.4), up
  // to the end of a byte. Any piece whose matches stay within it may follow.
  kFullFlush,
};

// Upper bound on the size of a DEFLATE stream that DeflateStream makes of
// `raw_size` bytes; and the further size of a full flush.
size_t DeflateSizeMax(size_t raw_size);
inline constexpr size_t kFullFlushSizeMax = 6;

// Thread-compatible. About 270 KiB, allocated by the first call.
class DeflateStream {
 public:
  explicit DeflateStream(int level);
  ~DeflateStream();

  DeflateStream(const DeflateStream&) = delete;
  DeflateStream& operator=(const DeflateStream&) = delete;

  // Compresses all of `raw` as one stream; returns its size. Matches may reach
  // back into `dictionary`, of which the last 32 KiB count, as if it were
  // before the text.
  // REQUIRES: stored.size() >= DeflateSizeMax(raw.size()), and more by
  //           kFullFlushSizeMax for that ending; all under 4 GiB.
  // Errors: Internal  zlib refused.
  absl::StatusOr<size_t> Compress(
      ByteView raw, MutableByteView stored, ByteView dictionary = {},
      DeflateEnding ending = DeflateEnding::kFinalBlock);

 private:
  const int level_;
  std::unique_ptr<z_stream_s> stream_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_ZLIB_ZLIB_STREAM_H_
