// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_PARSE_SPARSE_SEARCH_H_
#define QUIRE_CODECS_RLZ_PARSE_SPARSE_SEARCH_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codecs/rlz/parse/dictionary_index.h"
#include "codecs/rlz/parse/match_length.h"

namespace quire {

// Like DictionarySearch, for callers inside a long copy that would leave it
// only for a longer one. Looks up only the longest keys, at positions some way
// apart.
//
// Positions are offsets in the block, candidates offsets in the dictionary,
// both in bytes. Allocates nothing. For one block, on the stack;
// thread-compatible.
class SparseSearch {
 public:
  // Positions ascend by `stride`, which should be prime to that of the index.
  // Both must outlive the search. REQUIRES: stride > 0.
  SparseSearch(const DictionaryIndex& index, const BlockText& text,
               uint32_t stride)
      : index_(index),
        text_(text),
        stride_(stride),
        end_(index.dictionary().empty() || !index.has_long_keys() ||
                     text.size() < DictionaryIndex::kLongestKeySize
                 ? 0
                 : text.size() - DictionaryIndex::kLongestKeySize + 1) {}

  // Like DictionarySearch::Candidates(): valid until the next call, and the
  // caller must compare them. If `position` is not the next one, the fetches
  // ahead are wasted.
  std::span<const uint32_t> Candidates(uint32_t position, uint32_t look_at) {
    if (position != next_) {
      hashed_ = position;
      looked_ = position;
    }
    next_ = position + stride_;
    HashUpTo(std::min(end_, position + kBucketsAhead * stride_));
    LookUpTo(std::min(end_, position + kPlacesAhead * stride_), look_at);
    if (position >= end_) {
      return {};
    }
    const Found& found = FoundAt(position);
    return {found.places.data(), found.count};
  }

 private:
  // In strides, including the position itself.
  static constexpr uint32_t kBucketsAhead = 8;
  static constexpr uint32_t kPlacesAhead = 4;
  static constexpr uint32_t kRingSize = 8;

  struct Found {
    uint64_t hash = 0;
    size_t count = 0;
    std::array<uint32_t, DictionaryIndex::kWays> places = {};
  };

  Found& FoundAt(uint32_t position) {
    return found_[position / stride_ % kRingSize];
  }

  void HashUpTo(uint32_t end) {
    for (; hashed_ < end; hashed_ += stride_) {
      Found& found = FoundAt(hashed_);
      found.hash = DictionaryIndex::HashLongest(text_.block().data() + hashed_);
      index_.PrefetchLongest(found.hash);
    }
  }

  void LookUpTo(uint32_t end, uint32_t look_at) {
    for (; looked_ < end; looked_ += stride_) {
      Found& found = FoundAt(looked_);
      found.count = index_.FindLongest(found.hash, found.places.data());
      const uint32_t ahead = std::max(look_at, looked_) - looked_;
      for (size_t i = 0; i < found.count; ++i) {
        __builtin_prefetch(text_.dictionary().data() + found.places[i] + ahead);
      }
    }
  }

  const DictionaryIndex& index_;
  const BlockText& text_;
  const uint32_t stride_;
  // Positions from here on have no whole key.
  const uint32_t end_;
  // The position expected in the next call.
  uint32_t next_ = 0;
  // Positions of the next hash and the next look-up.
  uint32_t hashed_ = 0;
  uint32_t looked_ = 0;
  // By position, in strides, modulo the ring's size.
  std::array<Found, kRingSize> found_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PARSE_SPARSE_SEARCH_H_
