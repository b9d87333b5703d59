// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_PARSE_SEQUENCE_WRITER_H_
#define QUIRE_CODECS_RLZ_PARSE_SEQUENCE_WRITER_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/rlz/parse/sequence.h"

struct ZSTD_CCtx_s;

namespace quire {

// Maximum text per inner block of a Zstandard frame (RFC 8878, 3.1.1.2).
inline constexpr uint32_t kFrameBlockSizeBytesMax = 128 << 10;

// Encodes a parse as one Zstandard frame (RFC 8878) with its content size and
// without checksum and dictionary number, by libzstd's entropy coders. Any
// Zstandard decoder with the dictionary as raw content decodes it.
// Thread-compatible. Memory is reused from block to block.
class SequenceWriter {
 public:
  // For blocks of up to 1 MiB.
  static constexpr int kBlockWindowLog = 20;

  // The frame's window is of 2^window_log bytes. It must cover the text; copies
  // from the dictionary may be farther.
  explicit SequenceWriter(int window_log = kBlockWindowLog);
  ~SequenceWriter();

  SequenceWriter(const SequenceWriter&) = delete;
  SequenceWriter& operator=(const SequenceWriter&) = delete;

  // Upper bound on the result of Write().
  static size_t StoredSizeMax(size_t raw_size);

  // Writes `sequences`, which rebuild `raw`. Each step without a copy ends an
  // inner block, which has at most kFrameBlockSizeBytesMax bytes of text.
  // Copies have at least 3 bytes. Returns the size written to `stored`.
  // REQUIRES: stored.size() >= StoredSizeMax(raw.size()).
  // Errors: Internal  libzstd failed.
  absl::StatusOr<size_t> Write(ByteView raw, const SequenceList& sequences,
                               MutableByteView stored);

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };

  absl::Status MakeContext();

  const int window_log_;
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  struct Steps;
  std::unique_ptr<Steps> steps_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PARSE_SEQUENCE_WRITER_H_
