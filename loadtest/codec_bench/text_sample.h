// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_CODEC_BENCH_TEXT_SAMPLE_H_
#define QUIRE_LOADTEST_CODEC_BENCH_TEXT_SAMPLE_H_

#include <cstdint>

#include "absl/status/status.h"

#include "codecs/base/bytes.h"
#include "loadtest/requests/source_text.h"

namespace quire {

// Every n-th 256 KiB of a text, as one text: what is measured where all of it
// would take too long. Which these are depends on the stride and the text's
// size only, so that all codecs and block sizes meet the same bytes.
// Thread-safe.
class TextSample {
 public:
  static constexpr uint64_t kPieceSizeBytes = uint64_t{256} << 10;

  // Keeps piece stride/2 and every stride-th after it; with a stride of 1, the
  // whole text. A stride larger than the text has pieces keeps one piece.
  // `text` must outlive the sample. REQUIRES: stride > 0.
  TextSample(const SourceText& text, uint64_t stride);

  uint64_t size_bytes() const { return size_bytes_; }

  bool whole() const { return size_bytes_ == text_.size_bytes(); }

  // What a figure of the sample is multiplied by to stand for the text; 1 for
  // an empty text.
  double ScaleToText() const;

  // Fills `out` with the sample's text from `offset` on. Blocks on the disk.
  // Errors: OutOfRange   the sample ends before.
  //         Unavailable  the text cannot be read any more.
  absl::Status Read(uint64_t offset, MutableByteView out) const;

 private:
  const SourceText& text_;
  uint64_t stride_;
  uint64_t first_piece_;
  uint64_t size_bytes_ = 0;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_CODEC_BENCH_TEXT_SAMPLE_H_
