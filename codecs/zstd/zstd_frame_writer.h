// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_ZSTD_ZSTD_FRAME_WRITER_H_
#define QUIRE_CODECS_ZSTD_ZSTD_FRAME_WRITER_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"

// libzstd's own types.
struct ZSTD_CCtx_s;
struct ZSTD_CDict_s;

namespace quire {

// Writes blocks as zstd frames by libzstd, without content size, checksum and
// dictionary number; keeps its memory from frame to frame.
// Thread-compatible.
class ZstdFrameWriter {
 public:
  // Compresses at `level`; or, if `dictionary` is not null, as that was made
  // to, and always with its tables where they are. Does not own `dictionary`,
  // which must outlive it.
  ZstdFrameWriter(int level, const ZSTD_CDict_s* dictionary);
  ~ZstdFrameWriter();

  // Returns how many bytes it wrote to the front of `stored`.
  // REQUIRES: `stored` has libzstd's bound for raw.size().
  // Errors: Internal           libzstd refused.
  //         ResourceExhausted  not enough memory for its context.
  absl::StatusOr<size_t> Write(ByteView raw, MutableByteView stored);

 private:
  struct FreeContext {
    void operator()(ZSTD_CCtx_s* context) const;
  };

  absl::Status MakeContext();

  const int level_;
  const ZSTD_CDict_s* const dictionary_;
  // Made when first needed.
  std::unique_ptr<ZSTD_CCtx_s, FreeContext> context_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_ZSTD_ZSTD_FRAME_WRITER_H_
