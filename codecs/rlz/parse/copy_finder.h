// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_PARSE_COPY_FINDER_H_
#define QUIRE_CODECS_RLZ_PARSE_COPY_FINDER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codecs/rlz/parse/dictionary_index.h"
#include "codecs/rlz/parse/hash_chains.h"
#include "codecs/rlz/parse/match_length.h"

namespace quire {

// A stretch [begin, end) of a block that is equal to what lies `distance`
// before it, as far as that goes. Every part of it is a copy too, so that one
// of these stands for the matches at all of its positions.
struct Copy {
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t distance = 0;
};

// All of these affect size and speed.
struct CopyFinderOptions {
  // How many earlier positions of the block are compared at most.
  uint32_t chain_depth_max = 16;
  // In the dictionary long keys are looked up at every so many positions. All
  // strides here are prime to those of the index, so that no copy is missed
  // from end to end.
  uint32_t long_key_stride = 5;
  // Inside a copy that goes on at least this far, the block is searched only
  // for others that are half as long, or longer.
  uint32_t good_length = 16;
  // ... this far, only others are searched that go on still farther, and only
  // from every so many positions.
  uint32_t long_length = 48;
  uint32_t long_stride = 5;
  // ... this far, in the dictionary only such as have the longest key.
  uint32_t longest_length = 96;
  uint32_t longest_stride = 9;
};

// Finds what a block can be copied from: once, however often it is parsed.
// Memory is kept from block to block. Thread-compatible.
class CopyFinder {
 public:
  // None: the end of a list.
  static constexpr uint32_t kNone = 0xFFFFFFFF;

  explicit CopyFinder(const CopyFinderOptions& options) : options_(options) {}

  // REQUIRES: `index` is that of the text's dictionary.
  void Find(const DictionaryIndex& index, const BlockText& text);

  // The copies that begin at a position of the last text: the first, and that
  // after another.
  uint32_t FirstAt(uint32_t position) const { return first_at_[position]; }

  uint32_t Next(uint32_t number) const { return next_[number]; }

  const Copy& Get(uint32_t number) const { return copies_[number]; }

 private:
  class Run;

  void Start(const BlockText& text);
  void Add(const Copy& copy);

  const CopyFinderOptions options_;
  HashChains chains_;
  std::vector<Copy> copies_;
  std::vector<uint32_t> next_;
  std::vector<uint32_t> first_at_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PARSE_COPY_FINDER_H_
