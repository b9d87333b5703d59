// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_PARSE_SEQUENCE_WRITER_H_
#define QUIRE_CODECS_RLZ_PARSE_SEQUENCE_WRITER_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/rlz/parse/sequence.h"

struct ZSTD_CCtx_s;

namespace quire {

// Text per inner block of a Zstandard frame, at most (RFC 8878, 3.1.1.2).
inline constexpr uint32_t kFrameBlockSizeBytesMax = 128 << 10;

// Codes a parse as one Zstandard frame (RFC 8878) with its content size and
// without checksum and dictionary number, by libzstd's entropy coders. Any
// Zstandard decoder takes it that is given the dictionary as raw content.
// Thread-compatible. Memory is kept from block to block.
class SequenceWriter {
 public:
  SequenceWriter();
  ~SequenceWriter();

  SequenceWriter(const SequenceWriter&) = delete;
  SequenceWriter& operator=(const SequenceWriter&) = delete;

  // An upper bound of Write()'s result.
  static size_t StoredSizeMax(size_t raw_size);

  // `sequences` rebuild `raw`; each step without a copy ends an inner block,
  // which has at most kFrameBlockSizeBytesMax bytes of text. Copies have at
  // least 3 bytes. Returns how many bytes were written to `stored`.
  // REQUIRES: stored.size() >= StoredSizeMax(raw.size()).
  // Errors: Internal  libzstd refused.
  absl::StatusOr<size_t> Write(ByteView raw, const SequenceList& sequences,
                               MutableByteView stored);

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };

  absl::Status MakeContext();

  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  struct Steps;
  std::unique_ptr<Steps> steps_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PARSE_SEQUENCE_WRITER_H_
