// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_PAPER_WINDOW_CHOOSER_H_
#define QUIRE_CODECS_RLZ_PAPER_WINDOW_CHOOSER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codecs/base/bytes.h"

namespace quire {

// Finds the part of a dictionary that has most in common with a block, to prime
// zlib with ("Access Time Tradeoffs in Archive Compression", section 5,
// "Priming": "text drawn from the dictionary in the vicinity of the block"). A
// block does not know its position in the collection, but text near it shares
// its phrases.
//
// Samples one in eight of the dictionary's strings of eight bytes, by their
// hash, and keeps the last positions of each. The block's strings that the same
// rule samples vote for their positions. Takes about one byte of memory per
// byte of dictionary. Immutable, hence thread-safe.
class WindowChooser {
 public:
  // Maximum distance of deflate's matches (RFC 1951).
  static constexpr size_t kWindowSize = 32768;

  // Working memory of Choose().
  struct Memory {
    std::vector<uint64_t> strings;
    std::vector<uint32_t> votes;
  };

  // `dictionary` must outlive the chooser.
  explicit WindowChooser(ByteView dictionary);

  // Returns the offset of the window, which has kWindowSize bytes or ends with
  // the dictionary. A function of dictionary and block.
  size_t Choose(ByteView block, Memory& memory) const;

  size_t MemoryBytes() const { return places_.size() * sizeof(uint32_t); }

 private:
  // Number of positions kept per hash.
  static constexpr size_t kPlaces = 4;

  const ByteView dictionary_;
  unsigned table_bits_ = 0;
  // kPlaces positions per hash, plus 1; 0 is none.
  std::vector<uint32_t> places_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PAPER_WINDOW_CHOOSER_H_
