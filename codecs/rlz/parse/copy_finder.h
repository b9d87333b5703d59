// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_PARSE_COPY_FINDER_H_
#define QUIRE_CODECS_RLZ_PARSE_COPY_FINDER_H_

#include <cstdint>
#include <vector>

#include "codecs/rlz/parse/dictionary_index.h"
#include "codecs/rlz/parse/hash_chains.h"
#include "codecs/rlz/parse/match_length.h"

namespace quire {

// A maximal range [begin, end) of a block that equals the text `distance`
// before it. Every part of it is a copy too: one of these represents the
// matches at all of its positions.
struct Copy {
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t distance = 0;
  // Found only because a later copy has the same distance: it leads to that
  // one, across an edit. Others at its positions may be nearer and longer.
  bool is_lead = false;
};

// All of these affect size and speed.
struct CopyFinderOptions {
  // Maximum number of earlier positions of the block to compare.
  uint32_t chain_depth_max = 16;
  // Interval of long-key look-ups in the dictionary, in positions. All strides
  // here are prime to those of the index, so that no copy is missed entirely.
  uint32_t long_key_stride = 5;
  // Inside a copy with at least this much left, the block is searched only for
  // copies of half that length or more.
  uint32_t good_length = 64;
  // ... this much left, only longer copies are searched, and only at intervals.
  uint32_t long_length = 96;
  uint32_t long_stride = 5;
  // ... this much left, in the dictionary only copies with the longest key.
  uint32_t longest_length = 96;
  uint32_t longest_stride = 9;
  // Leads are searched before copies of at least lead_to_length bytes, across
  // edits of at most edit_size_max bytes; 0: none.
  uint32_t edit_size_max = 8;
  uint32_t lead_to_length = 12;
};

// Finds the copies of a block, once for any number of parses. Memory is reused
// from block to block. Thread-compatible.
class CopyFinder {
 public:
  // None: the end of a list.
  static constexpr uint32_t kNone = 0xFFFFFFFF;

  explicit CopyFinder(const CopyFinderOptions& options) : options_(options) {}

  // REQUIRES: `index` is that of the text's dictionary, and fine or dense.
  void Find(const DictionaryIndex& index, const BlockText& text);

  // Copies that begin at a position of the last text: the first, and the one
  // after another.
  uint32_t FirstAt(uint32_t position) const { return first_at_[position]; }

  uint32_t Next(uint32_t number) const { return next_[number]; }

  const Copy& Get(uint32_t number) const { return copies_[number]; }

 private:
  template <typename Chains>
  class Run;

  void Start(const BlockText& text);
  void Add(const Copy& copy);
  bool HasCopyAt(uint32_t begin, uint32_t distance) const;

  const CopyFinderOptions options_;
  BlockHashChains chains_;
  std::vector<Copy> copies_;
  std::vector<uint32_t> next_;
  std::vector<uint32_t> first_at_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PARSE_COPY_FINDER_H_
