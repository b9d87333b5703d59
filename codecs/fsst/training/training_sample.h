// SPDX-License-Identifier: Apache-2.0
//
// The sample for training a symbol table: many short pieces, spread evenly over
// all texts.
#ifndef QUIRE_CODECS_FSST_TRAINING_TRAINING_SAMPLE_H_
#define QUIRE_CODECS_FSST_TRAINING_TRAINING_SAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/fsst/table/symbol_table.h"

namespace quire {

// Copied pieces of texts, in the order of the texts. If all texts fit the
// sample, it contains all of them; otherwise it takes pieces of kPieceSizeBytes
// at regular distances of the concatenation. A text shorter than a piece is
// taken from its first byte, and the piece continues with the next texts, to
// learn how strings begin and end. Deterministic: the same texts give the same
// sample everywhere. Source: FSST paper, section 4.3. A sample from one offset
// was measured to cost 15-25 % of the factor on mixed data. Immutable:
// thread-safe.
class TrainingSample {
 public:
  // Not a multiple of a symbol's size, so that remainders at the end of a run
  // occur too.
  static constexpr size_t kPieceSizeBytes = 255;
  // Pieces end where the encoder cuts texts.
  static constexpr size_t kPieceSizeBytesMax = kFsstStringSizeMax;
  // Larger samples are cut to this; it bounds the memory of training.
  static constexpr size_t kSizeBytesMax = size_t{64} << 20;
  // Bytes readable after every piece, with any value.
  static constexpr size_t kReadableBehindBytes = 8;

  // Reads the size of every text, and at most `size_bytes_max` bytes of them.
  // In zero-terminated texts the bytes 00 are left out and end a piece: no
  // symbol contains one.
  TrainingSample(std::span<const ByteView> texts, size_t size_bytes_max,
                 bool zero_terminated = false);

  // Pieces have 1 to kPieceSizeBytesMax bytes.
  size_t piece_count() const { return piece_ends_.size(); }

  ByteView piece(size_t index) const {
    const size_t begin = index == 0 ? 0 : piece_ends_[index - 1];
    return {bytes_.data() + begin, piece_ends_[index] - begin};
  }

  size_t size_bytes() const {
    return piece_ends_.empty() ? 0 : piece_ends_.back();
  }

 private:
  void TakeAll(std::span<const ByteView> texts);
  void TakePieces(std::span<const ByteView> texts, uint64_t total_size,
                  size_t size_max);
  void Take(ByteView text);
  void AddPiece(ByteView piece);

  const bool zero_terminated_;
  std::vector<uint8_t> bytes_;
  std::vector<uint32_t> piece_ends_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_TRAINING_TRAINING_SAMPLE_H_
