// SPDX-License-Identifier: Apache-2.0
//
// Look-ups in a dictionary's index for the parsers that visit most positions of
// a block. Positions are offsets in the block; candidates are offsets in the
// dictionary.
#ifndef QUIRE_CODECS_RLZ_PARSE_DICTIONARY_SEARCH_H_
#define QUIRE_CODECS_RLZ_PARSE_DICTIONARY_SEARCH_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "codecs/rlz/parse/dictionary_index.h"
#include "codecs/rlz/parse/match_length.h"

namespace quire {

// Looks up positions of a block in a dictionary's index, in order, a little
// ahead of the parser. The buckets of a position are fetched first, then the
// candidates that they name; both are in the cache when the parser compares
// them. Many cache misses overlap instead of following each other.
//
// kFine also looks up the keys of a fine index, which only a fine one has.
//
// Allocates nothing: about 2 KiB (fine) on the stack, for one block.
// Thread-compatible; many searches may share an index. The candidates of a
// position depend on index, text and stride alone, never on `Ahead` or on which
// positions were requested before: archives depend on that.
template <bool kFine>
class BasicDictionarySearch {
 public:
  // Look-ahead for buckets and for their candidates, in positions. Large if all
  // positions are requested; smaller if many are skipped, since their fetches
  // are wasted. Affects only speed.
  // REQUIRES: places < buckets < 32.
  struct Ahead {
    uint32_t buckets;
    uint32_t places;
  };

  // Both must outlive the search. Long keys are looked up only at every
  // `long_key_stride`-th position. If copies are extended backwards this finds
  // the long ones, provided that it is prime to the strides of the index.
  // REQUIRES: index.is_fine() if kFine.
  BasicDictionarySearch(const DictionaryIndex& index, const BlockText& text,
                        uint32_t long_key_stride, Ahead ahead)
      : index_(index),
        text_(text),
        long_key_stride_(long_key_stride),
        ahead_(ahead),
        shortest_end_(KeyEnd(DictionaryIndex::kShortestKeySize)),
        middle_end_(KeyEnd(DictionaryIndex::kMiddleKeySize)),
        short_end_(LongKeyEnd(DictionaryIndex::kShortKeySize)),
        long_end_(LongKeyEnd(DictionaryIndex::kLongKeySize)),
        longest_end_(LongKeyEnd(DictionaryIndex::kLongestKeySize)) {}

  // Continues at `position` and wastes the fetches between: call it as soon as
  // the position is known.
  // REQUIRES: position >= all positions requested so far.
  void SkipTo(uint32_t position) {
    if (position > looked_) {
      looked_ = position;
      hashed_ = std::max(hashed_, position);
    }
    HashUpTo(position + ahead_.buckets);
  }

  // Fetches the buckets of a position that is likely to be requested, but not
  // next. Affects only speed. REQUIRES: position <= size of the block.
  void Prefetch(uint32_t position) const {
    const uint8_t* const key = text_.block().data() + position;
    if (position < short_end_) {
      index_.PrefetchShort(DictionaryIndex::HashShort(key));
    }
    if (position < long_end_) {
      index_.PrefetchLong(DictionaryIndex::HashLong(key));
    }
    if (position < longest_end_) {
      index_.PrefetchLongest(DictionaryIndex::HashLongest(key));
    }
  }

  // Returns dictionary offsets at which the text at `position` may occur, the
  // more promising first, at most DictionaryIndex::kWays; none near the block's
  // end or without a dictionary. The caller must compare them: all may be
  // wrong, and not all occurrences are among them. If `look_at` is after
  // `position`, the caller compares the bytes for block position `look_at`
  // first, and these are fetched for the next candidates. Valid until the next
  // call. REQUIRES: position >= all positions requested so far.
  std::span<const uint32_t> Candidates(uint32_t position, uint32_t look_at) {
    SkipTo(position);
    LookUpTo(position + ahead_.places, look_at);
    const Found& found = found_[position % kRingSize];
    return {found.places.data(), found.count};
  }

 private:
  static constexpr uint32_t kRingSize = 32;

  struct FineHashes {
    uint64_t shortest_hash = 0;
    uint64_t middle_hash = 0;
  };

  struct NoHashes {};

  struct Found : std::conditional_t<kFine, FineHashes, NoHashes> {
    uint64_t short_hash = 0;
    uint64_t long_hash = 0;
    uint64_t longest_hash = 0;
    size_t count = 0;
    std::array<uint32_t, DictionaryIndex::kWays> places = {};
  };

  uint32_t KeyEnd(uint32_t key_size) const {
    return index_.dictionary().empty() || text_.size() < key_size
               ? 0
               : text_.size() - key_size + 1;
  }

  // The same of the keys that a dense index lacks.
  uint32_t LongKeyEnd(uint32_t key_size) const {
    return index_.has_long_keys() ? KeyEnd(key_size) : 0;
  }

  bool HasLongKeys(uint32_t position) const {
    return position % long_key_stride_ == 0;
  }

  void HashUpTo(uint32_t end) {
    for (; hashed_ < end; ++hashed_) {
      Found& found = found_[hashed_ % kRingSize];
      const uint8_t* const key = text_.block().data() + hashed_;
      if constexpr (kFine) {
        HashFineKeys(key, found);
      }
      if (hashed_ < short_end_) {
        found.short_hash = DictionaryIndex::HashShort(key);
        index_.PrefetchShort(found.short_hash);
      }
      if (!HasLongKeys(hashed_)) {
        continue;
      }
      if (hashed_ < long_end_) {
        found.long_hash = DictionaryIndex::HashLong(key);
        index_.PrefetchLong(found.long_hash);
      }
      if (hashed_ < longest_end_) {
        found.longest_hash = DictionaryIndex::HashLongest(key);
        index_.PrefetchLongest(found.longest_hash);
      }
    }
  }

  void HashFineKeys(const uint8_t* key, Found& found) const {
    if (hashed_ < shortest_end_) {
      found.shortest_hash = DictionaryIndex::HashShortest(key);
      index_.PrefetchShortest(found.shortest_hash);
    }
    if (hashed_ < middle_end_) {
      found.middle_hash = DictionaryIndex::HashMiddle(key);
      index_.PrefetchMiddle(found.middle_hash);
    }
  }

  void LookUpTo(uint32_t end, uint32_t look_at) {
    for (; looked_ < end; ++looked_) {
      Found& found = found_[looked_ % kRingSize];
      found.count = 0;
      // Candidates with the longer key are better than most others.
      if (HasLongKeys(looked_)) {
        LookUpLongKeys(found);
      }
      if constexpr (kFine) {
        if (found.count == 0 && looked_ < middle_end_) {
          found.count =
              index_.FindMiddle(found.middle_hash, found.places.data());
        }
      }
      if (found.count == 0 && looked_ < short_end_) {
        found.count = index_.FindShort(found.short_hash, found.places.data());
      }
      if constexpr (kFine) {
        if (found.count == 0 && looked_ < shortest_end_) {
          found.count =
              index_.FindShortest(found.shortest_hash, found.places.data());
        }
      }
      const uint32_t ahead = std::max(look_at, looked_) - looked_;
      for (size_t i = 0; i < found.count; ++i) {
        __builtin_prefetch(text_.dictionary().data() + found.places[i] + ahead);
      }
    }
  }

  void LookUpLongKeys(Found& found) const {
    if (looked_ < longest_end_) {
      found.count = index_.FindLongest(found.longest_hash, found.places.data());
    }
    if (found.count == 0 && looked_ < long_end_) {
      found.count = index_.FindLong(found.long_hash, found.places.data());
    }
  }

  const DictionaryIndex& index_;
  const BlockText& text_;
  const uint32_t long_key_stride_;
  const Ahead ahead_;
  const uint32_t shortest_end_;
  const uint32_t middle_end_;
  const uint32_t short_end_;
  const uint32_t long_end_;
  const uint32_t longest_end_;
  // Positions below this are hashed, and looked up.
  uint32_t hashed_ = 0;
  uint32_t looked_ = 0;
  // By position modulo the ring's size: hashes from looked_ on, candidates
  // before it.
  std::array<Found, kRingSize> found_;
};

using DictionarySearch = BasicDictionarySearch<false>;
using FineDictionarySearch = BasicDictionarySearch<true>;

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PARSE_DICTIONARY_SEARCH_H_
