// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/parse/lazy_parser.h"

#include <algorithm>
#include <bit>

#include "codecs/rlz/parse/dictionary_search.h"
#include "codecs/rlz/parse/recent_distances.h"

namespace quire {
namespace {

// The estimate: the saving of a copied byte and the cost of a bit, in the same
// unit. Literals cost 6 bits or more, but another copy would save most of the
// other bytes: 4.6 bits gives the smallest blocks.
constexpr int32_t kByteWorth = 64;
constexpr int32_t kBitPrice = 14;
// Bits of a sequence's own codes, with a distance in full or by number.
constexpr int32_t kFullDistanceBits = 5;
constexpr int32_t kRecentDistanceBits = 6;
// Lower bound on the price of a copy.
constexpr int32_t kLeastPrice = kBitPrice * kRecentDistanceBits;
// Additional gain required of a copy that begins one position later.
constexpr int32_t kDelayPrice = 30;

constexpr uint32_t kRecentLengthMin = 3;
constexpr uint32_t kLengthMin = HashChains<uint32_t>::kKeySize;

// Copies of this length or more are taken without looking for better ones.
constexpr uint32_t kLongEnough = 1000;

// After 2^kLazyStepShift literals every second position is tried, and so on.
constexpr uint32_t kLazyStepShift = 7;

// After the start of a copy three positions are requested, then none up to its
// end: fetching farther ahead is mostly wasted.
constexpr DictionarySearch::Ahead kLazyAhead = {.buckets = 5, .places = 2};

struct LazyCopy {
  uint32_t begin = 0;
  uint32_t length = 0;
  uint32_t distance = 0;
  // Above 0 if the copy is worth its price.
  int32_t gain = 0;
};

int32_t PriceOf(uint32_t distance) {
  return kBitPrice *
         (static_cast<int32_t>(std::bit_width(distance)) + kFullDistanceBits);
}

// The state of one parse.
template <typename Chains>
class Run {
 public:
  Run(const LazyParserOptions& options, const DictionaryIndex& index,
      const BlockText& text, Chains& chains, SequenceList& sequences)
      : options_(options),
        text_(text),
        search_(index, text, /*long_key_stride=*/1, kLazyAhead),
        chains_(chains),
        sequences_(sequences) {}

  // Parses from the end of the last piece to `end`.
  void ParsePiece(uint32_t end) {
    end_ = end;
    uint32_t position = anchor_;
    while (position + kLengthMin <= end) {
      LazyCopy best = Find(position, {});
      if (best.length == 0) {
        position += 1 + ((position - anchor_) >> kLazyStepShift);
        continue;
      }
      best = LookAhead(position, best);
      Take(best);
      position = anchor_;
    }
    sequences_.push_back({.literal_run = end - anchor_});
    anchor_ = end;
  }

 private:
  LazyCopy LookAhead(uint32_t position, LazyCopy best) {
    Prefetch(best);
    uint32_t best_at = position;
    while (position < best_at + options_.lookahead &&
           best.length < kLongEnough) {
      ++position;
      if (position + kLengthMin > end_) {
        break;
      }
      const auto delay = static_cast<int32_t>(position - best_at);
      const LazyCopy next = Find(
          position,
          {.distance = best.distance, .gain = best.gain + kDelayPrice * delay});
      if (next.length != 0) {
        best = next;
        best_at = position;
      }
    }
    return best;
  }

  void Take(const LazyCopy& copy) {
    sequences_.push_back({.literal_run = copy.begin - anchor_,
                          .match_length = copy.length,
                          .distance = copy.distance});
    recent_.Use(copy.distance);
    anchor_ = copy.begin + copy.length;
    search_.SkipTo(anchor_);
  }

  // Fetches what the search after the copy reads first; rarely in vain, as the
  // copy is usually taken.
  void Prefetch(const LazyCopy& copy) const {
    const uint32_t end = copy.begin + copy.length;
    search_.Prefetch(end);
    for (const uint32_t distance :
         {copy.distance, recent_.distances[0], recent_.distances[1]}) {
      if (distance > end && text_.HasSource(end, distance)) {
        __builtin_prefetch(text_.dictionary().data() +
                           (text_.dictionary().size() - (distance - end)));
      }
    }
  }

  // Returns the copy of the largest gain above that of `known`, whose distance
  // is not tried again; one of no length if there is none.
  LazyCopy Find(uint32_t position, const LazyCopy& known) {
    LazyCopy best = {.gain = known.gain};
    known_distance_ = known.distance;
    TryRecent(position, best);
    if (best.length >= kLongEnough) {
      return best;
    }
    TryDictionary(position, best);
    TryChains(position, best);
    return best;
  }

  void TryRecent(uint32_t position, LazyCopy& best) {
    for (uint32_t number = 1; number <= 3; ++number) {
      const uint32_t distance = recent_.Get(number, position == anchor_);
      if (distance == 0 || distance == known_distance_) {
        continue;
      }
      const uint32_t length = text_.MatchLength(position, distance, end_);
      if (length >= kRecentLengthMin) {
        Offer({.begin = position, .length = length, .distance = distance},
              kBitPrice * kRecentDistanceBits, best);
      }
    }
  }

  void TryDictionary(uint32_t position, LazyCopy& best) {
    for (const uint32_t place : search_.Candidates(position, position)) {
      const uint32_t distance = text_.DistanceTo(place, position);
      if (distance == best.distance || distance == known_distance_) {
        continue;
      }
      const uint32_t length = text_.MatchLength(position, distance, end_);
      if (length >= DictionaryIndex::kShortKeySize) {
        OfferExtended(position, length, distance, best);
      }
    }
  }

  void TryChains(uint32_t position, LazyCopy& best) {
    chains_.EnterUpTo(position);
    const uint8_t* const block = text_.block().data();
    uint32_t earlier = chains_.First(position);
    // A look ahead has already entered these positions.
    while (earlier != Chains::kNone && earlier >= position) {
      earlier = chains_.Next(earlier);
    }
    // Length that a copy must exceed to be the best.
    uint32_t length_least =
        std::max(kLengthMin - 1,
                 static_cast<uint32_t>((best.gain + kLeastPrice) / kByteWorth));
    for (uint32_t depth = 0;
         depth < options_.chain_depth_max && earlier != Chains::kNone;
         ++depth, earlier = chains_.Next(earlier)) {
      if (position + length_least >= end_) {
        break;
      }
      if (block[earlier + length_least] != block[position + length_least] ||
          position - earlier == known_distance_) {
        continue;
      }
      const uint32_t length =
          EqualBytes(block + earlier, block + position, end_ - position);
      if (length > length_least) {
        length_least = length;
        OfferExtended(position, length, position - earlier, best);
      }
    }
  }

  // Offers a copy, extended backwards.
  void OfferExtended(uint32_t position, uint32_t length, uint32_t distance,
                     LazyCopy& best) {
    const uint32_t before =
        text_.MatchLengthBefore(position, distance, position - anchor_);
    Offer({.begin = position - before,
           .length = before + length,
           .distance = distance},
          PriceOf(distance), best);
  }

  static void Offer(LazyCopy copy, int32_t price, LazyCopy& best) {
    copy.gain = static_cast<int32_t>(copy.length) * kByteWorth - price;
    if (copy.gain > best.gain) {
      best = copy;
    }
  }

  const LazyParserOptions& options_;
  const BlockText& text_;
  DictionarySearch search_;
  Chains& chains_;
  SequenceList& sequences_;
  RecentDistances recent_;
  // A distance not to try; 0: none.
  uint32_t known_distance_ = 0;
  // End of the last copy.
  uint32_t anchor_ = 0;
  // End of the piece.
  uint32_t end_ = 0;
};

}  // namespace

void LazyParser::Parse(const DictionaryIndex& index, const BlockText& text,
                       uint32_t piece_size, SequenceList& sequences) {
  sequences.clear();
  chains_.For(text.size(), [&](auto& chains) {
    chains.Start(text.block());
    Run run(options_, index, text, chains, sequences);
    for (uint32_t end = 0; end < text.size();) {
      end = std::min(text.size(), end + piece_size);
      run.ParsePiece(end);
    }
  });
}

}  // namespace quire
