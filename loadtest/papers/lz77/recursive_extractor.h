// SPDX-License-Identifier: GPL-3.0-or-later
//
// Extracts any range of a block's text from its phrases, without the text
// before it.
#ifndef QUIRE_LOADTEST_PAPERS_LZ77_RECURSIVE_EXTRACTOR_H_
#define QUIRE_LOADTEST_PAPERS_LZ77_RECURSIVE_EXTRACTOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "codecs/base/bytes.h"
#include "loadtest/papers/lz77/phrase.h"

namespace quire {

// Recursive extraction without recursion: "Random Read Speedup in Compression
// Enabled Storage Systems", section 2.1 and Figure 1. A stack of bounded depth
// holds the text still to extract; bytes of the range are written from first to
// last. A match inside another match is followed to its root at once. Text
// extracted before, inside the range or before it, is copied. Matches that
// overlap themselves are expanded by their period.
//
// Thread-compatible: one per thread, for any number of blocks. About 12 KiB;
// allocates nothing.
class RecursiveExtractor {
 public:
  static constexpr uint32_t kNoBudget = std::numeric_limits<uint32_t>::max();

  // Fills `out` with the text from `text_offset` on, in at most `step_budget`
  // steps; a step is one piece of a phrase. Returns false if the budget or the
  // stack was exceeded. Then `out` is unspecified, and the caller must decode
  // the text from its start. `index`: see phrase_index.h; built from the same
  // block.
  // REQUIRES: text_offset + out.size() <= block.text_size().
  template <class Index>
  bool Extract(const PhraseBlock& block, const Index& index,
               uint32_t text_offset, MutableByteView out,
               uint32_t step_budget = kNoBudget);

  // Number of steps of the last call.
  uint32_t steps() const { return steps_; }

 private:
  static constexpr uint32_t kUnknown = std::numeric_limits<uint32_t>::max();
  static constexpr size_t kDepthMax = 256;
  static constexpr size_t kMemoSize = 256;

  // Text [offset, offset + size) to write next.
  struct Task {
    uint32_t offset;
    uint32_t size;
    // The phrase at `offset` or one before it; stored_offset is kUnknown before
    // the look-up.
    PhrasePlace place;
    // Unless 0, the bytes are copied from this distance in the output.
    uint32_t output_distance;
  };

  // The written part of a phrase's match, and its offset in the output.
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

  // Copies may write and read up to 16 bytes at once if there is space.
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

#endif  // QUIRE_LOADTEST_PAPERS_LZ77_RECURSIVE_EXTRACTOR_H_
