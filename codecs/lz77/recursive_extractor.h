// SPDX-License-Identifier: GPL-3.0-or-later
//
// Any range of a block's text from its phrases, without the text before it.
#ifndef QUIRE_CODECS_LZ77_RECURSIVE_EXTRACTOR_H_
#define QUIRE_CODECS_LZ77_RECURSIVE_EXTRACTOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "codecs/base/bytes.h"
#include "codecs/lz77/phrase.h"

namespace quire {

// "Random Read Speedup in Compression Enabled Storage Systems", section 2.1
// and Figure 1, without recursion: what is still to be extracted lies on a
// stack of bounded depth, and the bytes of the range are written from the first
// to the last. A match that lies inside another match is followed to its root
// in one go; what was extracted once, inside the range or before it, is copied
// from there; matches that overlap themselves are expanded by their period.
//
// Thread-compatible: each thread has one of its own, for any number of blocks.
// About 12 KiB; allocates nothing.
class RecursiveExtractor {
 public:
  static constexpr uint32_t kNoBudget = std::numeric_limits<uint32_t>::max();

  // Fills `out` with the text from `text_offset` on, taking at most
  // `step_budget` steps; a step is one piece of a phrase.
  // False if that did not suffice, or a chain of matches was too deep; then
  // `out` holds nothing of use, and the text must be decoded from its start.
  // Index: see phrase_index.h; made of this block's places.
  // REQUIRES: text_offset + out.size() <= block.text_size().
  template <class Index>
  bool Extract(const PhraseBlock& block, const Index& index,
               uint32_t text_offset, MutableByteView out,
               uint32_t step_budget = kNoBudget);

  // Steps that the last call took.
  uint32_t steps() const { return steps_; }

 private:
  static constexpr uint32_t kUnknown = std::numeric_limits<uint32_t>::max();
  static constexpr size_t kDepthMax = 256;
  static constexpr size_t kMemoSize = 256;

  // Text [offset, offset + size) that is to be written next.
  struct Task {
    uint32_t offset;
    uint32_t size;
    // The phrase at `offset` or one before it; stored_offset is kUnknown until
    // it was looked up.
    PhrasePlace place;
    // Not 0: the bytes are those that lie so far before in the output.
    uint32_t output_distance;
  };

  // What of a phrase's match was written, and where in the output it is.
  struct Memo {
    uint32_t epoch = 0;
    uint32_t phrase_offset = 0;
    uint32_t text_offset = 0;
    uint32_t size = 0;
    uint32_t output_offset = 0;
  };

  static size_t MemoSlot(uint32_t phrase_offset) {
    return (phrase_offset * 2654435761u) >> 24;
  }

  // Copies that may write and read up to 16 bytes at once where there is space.
  void AppendLiterals(ByteView stored, uint32_t offset, uint32_t size);
  void AppendFromOutput(uint32_t output_offset, uint32_t size);
  bool Push(const Task& task);

  MutableByteView out_;
  uint32_t done_ = 0;
  uint32_t steps_ = 0;
  uint32_t epoch_ = 0;
  size_t depth_ = 0;
  std::array<Task, kDepthMax> stack_;
  std::array<Memo, kMemoSize> memo_ = {};
};

}  // namespace quire

#endif  // QUIRE_CODECS_LZ77_RECURSIVE_EXTRACTOR_H_
