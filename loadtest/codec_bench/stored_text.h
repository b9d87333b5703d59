// SPDX-License-Identifier: Apache-2.0
//
// A text under a codec, in memory: what the codec benchmark encodes, decodes
// and checks. An archive's blocks without its files.
#ifndef QUIRE_LOADTEST_CODEC_BENCH_STORED_TEXT_H_
#define QUIRE_LOADTEST_CODEC_BENCH_STORED_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/block_codec.h"
#include "loadtest/codec_bench/text_sample.h"

namespace quire {

// CPU time of the calling thread, in seconds.
double ThreadCpuSeconds();

// CPU seconds that Encode() takes for a byte of `text`, judged by up to 17
// blocks spread over it, or fewer if these take long. REQUIRES: as
// StoredText::Encode().
// Errors: as StoredText::Encode().
absl::StatusOr<double> EstimateEncodeSecondsPerByte(const BlockCodec& encoder,
                                                    const TextSample& text,
                                                    uint32_t block_size_bytes);

// Immutable after Encode(), hence thread-safe; the codec that decodes need not
// be the one that encoded.
class StoredText {
 public:
  // Cuts `text` into blocks (the last may be shorter) and encodes each, on
  // `thread_count` threads.
  // REQUIRES: 0 < block_size_bytes <= kBlockSizeBytesMax; thread_count > 0.
  // Errors: those of the codec, and of reading the text.
  static absl::StatusOr<StoredText> Encode(const BlockCodec& encoder,
                                           const TextSample& text,
                                           uint32_t block_size_bytes,
                                           size_t thread_count = 1);

  size_t block_count() const { return blocks_.size(); }

  uint64_t size_bytes() const { return size_bytes_; }

  // Of all blocks as stored.
  uint64_t payload_bytes() const { return payload_bytes_; }

  // Of the blocks' stored sizes, as 32-bit little-endian integers under zlib
  // -9: about what a reader needs to find a block.
  uint64_t index_bytes() const { return index_bytes_; }

  // Spent in the codec by all threads together, reading not included.
  double encode_cpu_seconds() const { return encode_cpu_seconds_; }

  // Decodes block `index` to the front of `raw`; returns the block's size.
  // REQUIRES: index < block_count(); raw.size() >= the block size.
  // Errors: DataLoss  the codec cannot decode what it encoded.
  absl::StatusOr<size_t> DecodeBlock(const BlockCodec& decoder, size_t index,
                                     MutableByteView raw,
                                     BlockCodec::Scratch& scratch) const;

  // Decodes the text from `offset` on, across blocks where it must.
  // REQUIRES: offset + out.size() <= size_bytes().
  // Errors: DataLoss  the codec cannot decode what it encoded.
  absl::Status DecodeRange(const BlockCodec& decoder, uint64_t offset,
                           MutableByteView out,
                           BlockCodec::Scratch& scratch) const;

  // Decodes every block, and `range_count` ranges of `range_size_bytes` at
  // random (fewer bytes if the text has no more), and compares with the text.
  // Errors: DataLoss  a byte differs, or the codec cannot decode; says where.
  absl::Status Check(const BlockCodec& decoder, const TextSample& text,
                     int range_count, uint32_t range_size_bytes) const;

 private:
  explicit StoredText(uint32_t block_size_bytes)
      : block_size_bytes_(block_size_bytes) {}

  size_t BlockSize(size_t index) const;
  absl::StatusOr<double> EncodeEveryNth(const BlockCodec& encoder,
                                        const TextSample& text, size_t first,
                                        size_t n);
  absl::Status MeasureIndex();
  absl::Status CheckBlocks(const BlockCodec& decoder,
                           const TextSample& text) const;
  absl::Status CheckRanges(const BlockCodec& decoder, const TextSample& text,
                           int range_count, uint32_t range_size_bytes) const;

  uint32_t block_size_bytes_;
  uint64_t size_bytes_ = 0;
  uint64_t payload_bytes_ = 0;
  uint64_t index_bytes_ = 0;
  double encode_cpu_seconds_ = 0;
  std::vector<std::vector<uint8_t>> blocks_;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_CODEC_BENCH_STORED_TEXT_H_
