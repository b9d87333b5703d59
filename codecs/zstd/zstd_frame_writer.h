// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_ZSTD_ZSTD_FRAME_WRITER_H_
#define QUIRE_CODECS_ZSTD_ZSTD_FRAME_WRITER_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"

// Type of libzstd.
struct ZSTD_CCtx_s;

namespace quire {

// Writes blocks as zstd frames by libzstd, without content size, checksum and
// dictionary number; reuses its memory from frame to frame.
// Thread-compatible.
class ZstdFrameWriter {
 public:
  explicit ZstdFrameWriter(int level);
  ~ZstdFrameWriter();

  // Returns the size written to the front of `stored`.
  // REQUIRES: `stored` has libzstd's bound for raw.size().
  // Errors: Internal  libzstd failed.
  absl::StatusOr<size_t> Write(ByteView raw, MutableByteView stored);

 private:
  struct FreeContext {
    void operator()(ZSTD_CCtx_s* context) const;
  };

  absl::Status MakeContext();

  const int level_;
  // Created at the first use.
  std::unique_ptr<ZSTD_CCtx_s, FreeContext> context_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_ZSTD_ZSTD_FRAME_WRITER_H_
