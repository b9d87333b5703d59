// SPDX-License-Identifier: Apache-2.0
//
// A text in blocks of one codec, in memory: an archive's blocks without its
// files. The programs of this directory measure sizes and speeds with it.
#ifndef QUIRE_LOADTEST_PAPERS_CODED_TEXT_H_
#define QUIRE_LOADTEST_PAPERS_CODED_TEXT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/payload/payload_codec.h"

namespace quire {

// CPU time of the calling thread, in seconds.
double ThreadCpuSeconds();

// Calls step(0), step(1), ... in three rounds of at least `seconds` of CPU time
// each. Returns the calls per second of the fastest round, as other load only
// slows a round. REQUIRES: seconds > 0.
template <typename Step>
double BestRate(double seconds, Step step) {
  double best = 0;
  uint64_t number = 0;
  uint64_t count = 1;
  for (int round = 0; round < 3; ++round) {
    double used = 0;
    while (true) {
      const double started = ThreadCpuSeconds();
      for (uint64_t i = 0; i < count; ++i) {
        step(number++);
      }
      used = ThreadCpuSeconds() - started;
      if (used >= seconds) {
        break;
      }
      count *= 2;
    }
    best = std::max(best, static_cast<double>(count) / used);
  }
  return best;
}

// Immutable, hence thread-safe. The decoding codec may be another object than
// the encoding one.
class CodedText {
 public:
  // Divides `text` into blocks (the last may be shorter) and encodes them on
  // `thread_count` threads.
  // REQUIRES: !text.empty(), 0 < block_size_bytes <= kBlockSizeBytesMax,
  //           thread_count > 0.
  // Errors: those of the codec.
  static absl::StatusOr<CodedText> Encode(const PayloadCodec& codec,
                                          ByteView text,
                                          size_t block_size_bytes,
                                          size_t thread_count = 1);

  uint64_t size_bytes() const { return size_bytes_; }

  size_t block_count() const { return blocks_.size(); }

  // Sum of the stored sizes of all blocks.
  uint64_t payload_bytes() const;

  // Size under zlib -9 of all stored sizes as 32-bit integers: an estimate of a
  // reader's block index. Errors: Internal  zlib failed.
  absl::StatusOr<uint64_t> IndexBytes() const;

  // CPU time of all threads in the codec.
  double encode_cpu_seconds() const { return encode_cpu_seconds_; }

  // Decodes the text at [offset, offset + out.size()).
  // REQUIRES: offset + out.size() <= size_bytes().
  // Errors: those of the codec.
  absl::Status Read(const PayloadCodec& codec, uint64_t offset,
                    MutableByteView out, PayloadCodec::Scratch& scratch) const;

  // Compares every block, and 500 ranges of at most 16 KiB, with `text`.
  // Errors: DataLoss  a byte differs, or the codec cannot decode.
  absl::Status Check(const PayloadCodec& codec, ByteView text) const;

 private:
  struct Block {
    std::vector<uint8_t> stored;
    bool is_raw = false;
  };

  absl::Status CheckRange(const PayloadCodec& codec, ByteView text,
                          uint64_t offset, size_t size,
                          PayloadCodec::Scratch& scratch) const;

  size_t block_size_bytes_ = 0;
  uint64_t size_bytes_ = 0;
  double encode_cpu_seconds_ = 0;
  std::vector<Block> blocks_;
};

// Size of `text` under zlib -9. Errors: Internal  zlib failed.
absl::StatusOr<uint64_t> ZlibSizeBytes(ByteView text);

}  // namespace quire

#endif  // QUIRE_LOADTEST_PAPERS_CODED_TEXT_H_
