// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_ZSTD_DECODER_SEQUENCE_READER_H_
#define QUIRE_CODECS_ZSTD_DECODER_SEQUENCE_READER_H_

#include <array>
#include <cstddef>
#include <span>

#include "codecs/base/bytes.h"
#include "codecs/zstd/decoder/backward_bits.h"
#include "codecs/zstd/decoder/sequence_copy.h"
#include "codecs/zstd/decoder/sequence_table.h"

namespace quire {

// Limits of a block's text, and its progress. Positions are in the frame's
// text.
struct SequenceProgress {
  size_t position = 0;
  // No sequence may end after this.
  size_t position_max = 0;
  // End of the wanted text: the sequence that reaches it is cut there and is
  // the last.
  size_t wanted_end = 0;
  // Literals not yet used by a sequence.
  size_t literal_count = 0;
};

// Reads the sequences of a frame's inner blocks (RFC 8878, section 3.1.1.3.2)
// and computes the address of each match without touching it: a batch of
// matches is prefetched before the first is copied.
//
// It keeps the state between blocks: tables and recent distances. All malformed
// or unusual input gives false.
// Thread-compatible.
class SequenceReader {
 public:
  static constexpr size_t kBatchSizeMax = 128;

  // Begins a frame.
  void Reset();

  // Begins a block: reads the section up to the sequences.
  // REQUIRES: BackwardBits::kBytesInFront readable bytes in front of `section`.
  bool Open(ByteView section);

  // Sequences of the block not yet read.
  size_t left() const { return state_.left; }

  // Reads the next sequences, at most kBatchSizeMax, and advances `progress`.
  // Returns false if, among others, they reach past the text, the dictionary or
  // the literals, or if the section does not end with its last sequence.
  // REQUIRES: left() > 0, progress.position < progress.wanted_end.
  bool ReadBatch(const CopySpace& space, SequenceProgress& progress);

  // The sequences of the last ReadBatch(); valid until the next call.
  std::span<const CopySequence> batch() const {
    return std::span(batch_).first(batch_size_);
  }

  // State that changes from sequence to sequence.
  struct State {
    BackwardBits bits;
    size_t literal_size = 0;
    size_t distance = 0;
    size_t match_size = 0;
    std::array<size_t, 3> recent = {};
    size_t left = 0;
  };

 private:
  SequenceTable literal_size_table_{SequenceField::kLiteralSize};
  SequenceTable distance_table_{SequenceField::kDistance};
  SequenceTable match_size_table_{SequenceField::kMatchSize};
  State state_;
  std::array<CopySequence, kBatchSizeMax> batch_;
  size_t batch_size_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_ZSTD_DECODER_SEQUENCE_READER_H_
