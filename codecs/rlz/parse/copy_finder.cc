// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/parse/copy_finder.h"

#include <algorithm>
#include <span>

#include "codecs/base/check.h"
#include "codecs/rlz/parse/dictionary_search.h"
#include "codecs/rlz/parse/sparse_search.h"

namespace quire {
namespace {

// Upper bound on extending a copy backwards: for offsets missing from the
// index, and positions that were not searched. Also for a distance that is not
// found again at each position: it may have been valid for longer.
constexpr uint32_t kBeforeMax = 256;

// Once 2^kStepShift bytes were not part of any copy, every second position is
// searched, and so on: compressed text has few copies.
constexpr uint32_t kStepShift = 9;

// Leads before a copy: the maximum number, and the minimum length of each.
constexpr uint32_t kLeadCountMax = 4;
constexpr uint32_t kLeadLengthMin = 6;

constexpr FineDictionarySearch::Ahead kSearchAhead = {.buckets = 16,
                                                      .places = 8};

// Current copies that are remembered, to avoid finding them again.
constexpr size_t kActiveMax = 8;

}  // namespace

template <typename Chains>
class CopyFinder::Run {
 public:
  Run(CopyFinder& finder, const DictionaryIndex& index, const BlockText& text,
      Chains& chains)
      : finder_(finder),
        chains_(chains),
        options_(finder.options_),
        text_(text),
        search_(index, text, options_.long_key_stride, kSearchAhead),
        sparse_search_(index, text, options_.longest_stride) {}

  void FindAll() {
    const uint32_t size = text_.size();
    uint32_t position = 0;
    while (position + Chains::kKeySize <= size) {
      position += SearchAt(position);
    }
  }

 private:
  // Returns the distance to the next position worth a search.
  uint32_t SearchAt(uint32_t position) {
    if (CoveredAt(position) >= options_.longest_length) {
      TryPlaces(position, sparse_search_.Candidates(position, farthest_));
      SearchBlock(position, CoveredAt(position));
      return options_.longest_stride;
    }
    TryPlaces(position, search_.Candidates(position, farthest_));
    const uint32_t still_covered = CoveredAt(position);
    if (still_covered >= options_.long_length) {
      SearchBlock(position, still_covered);
      return options_.long_stride;
    }
    SearchBlock(position, still_covered >= options_.good_length
                              ? still_covered / 2
                              : Chains::kKeySize - 1);
    return 1 + ((position - std::min(position, farthest_)) >> kStepShift);
  }

  // Returns how many bytes from `position` on are in one copy.
  uint32_t CoveredAt(uint32_t position) const {
    return std::max(farthest_, position) - position;
  }

  bool IsActive(uint32_t distance, uint32_t position) const {
    return std::ranges::any_of(active_, [&](const Copy& copy) {
      return copy.distance == distance && copy.end > position;
    });
  }

  // Adds the copy found at `position`, extended backwards.
  void Add(uint32_t position, uint32_t length, uint32_t distance) {
    const uint32_t before = text_.MatchLengthBefore(
        position, distance, std::min(position, kBeforeMax));
    const Copy copy = {.begin = position - before,
                       .end = position + length,
                       .distance = distance};
    active_[active_next_] = copy;
    active_next_ = (active_next_ + 1) % kActiveMax;
    farthest_ = std::max(farthest_, copy.end);
    finder_.Add(copy);
    if (copy.end - copy.begin >= options_.lead_to_length) {
      AddLeads(copy.begin, distance);
    }
  }

  // Adds earlier copies at the same distance. Each ends up to edit_size_max
  // bytes before the next; the last before `begin`.
  void AddLeads(uint32_t begin, uint32_t distance) {
    for (uint32_t count = 0; count < kLeadCountMax; ++count) {
      const Copy lead = LeadBefore(begin, distance);
      if (lead.end == 0 || finder_.HasCopyAt(lead.begin, distance)) {
        return;
      }
      finder_.Add(lead);
      begin = lead.begin;
    }
  }

  // Returns the last one that ends before `begin`; an empty one if there is
  // none.
  Copy LeadBefore(uint32_t begin, uint32_t distance) const {
    const uint32_t size_max = std::min(options_.edit_size_max, begin);
    for (uint32_t size = 1; size <= size_max; ++size) {
      const uint32_t end = begin - size;
      if (!text_.HasSource(end, distance)) {
        break;
      }
      const uint32_t length =
          text_.MatchLengthBefore(end, distance, std::min(end, kBeforeMax));
      if (length >= kLeadLengthMin) {
        return {.begin = end - length,
                .end = end,
                .distance = distance,
                .is_lead = true};
      }
    }
    return {};
  }

  // The dictionary is far: only a longer copy than all others is useful, so its
  // decisive byte is compared first.
  void TryPlaces(uint32_t position, std::span<const uint32_t> places) {
    const uint32_t ahead = CoveredAt(position);
    if (position + ahead >= text_.size()) {
      return;
    }
    const ByteView dictionary = text_.dictionary();
    for (const uint32_t place : places) {
      if (ahead < dictionary.size() - place &&
          dictionary[place + ahead] != text_.block()[position + ahead]) {
        continue;
      }
      const uint32_t distance = text_.DistanceTo(place, position);
      const uint32_t length =
          text_.MatchLength(position, distance, text_.size());
      if (length >= DictionaryIndex::kShortestKeySize &&
          position + length > farthest_) {
        Add(position, length, distance);
      }
    }
  }

  // Searches the block itself for copies longer than `length_least`, nearest
  // first: a farther one must be longer.
  void SearchBlock(uint32_t position, uint32_t length_least) {
    chains_.EnterUpTo(position);
    const uint8_t* const here = text_.block().data() + position;
    const uint32_t limit = text_.size() - position;
    uint32_t earlier = chains_.First(position);
    for (uint32_t depth = 0; depth < options_.chain_depth_max &&
                             earlier != Chains::kNone && length_least < limit;
         ++depth, earlier = chains_.Next(earlier)) {
      const uint32_t distance = position - earlier;
      const uint8_t* const there = here - distance;
      if (there[length_least] != here[length_least]) {
        continue;
      }
      const uint32_t length = EqualBytes(there, here, limit);
      if (length <= length_least) {
        continue;
      }
      length_least = length;
      if (!IsActive(distance, position)) {
        Add(position, length, distance);
      }
    }
  }

  CopyFinder& finder_;
  Chains& chains_;
  const CopyFinderOptions& options_;
  const BlockText& text_;
  FineDictionarySearch search_;
  SparseSearch sparse_search_;
  // The last copies found.
  std::array<Copy, kActiveMax> active_ = {};
  size_t active_next_ = 0;
  // End of the copy that extends farthest.
  uint32_t farthest_ = 0;
};

void CopyFinder::Find(const DictionaryIndex& index, const BlockText& text) {
  QUIRE_CHECK(index.is_fine(), "copies are found in a fine index");
  Start(text);
  chains_.For(text.size(), [&](auto& chains) {
    chains.Start(text.block());
    Run(*this, index, text, chains).FindAll();
  });
}

void CopyFinder::Start(const BlockText& text) {
  copies_.clear();
  next_.clear();
  first_at_.assign(text.size(), kNone);
}

void CopyFinder::Add(const Copy& copy) {
  const auto number = static_cast<uint32_t>(copies_.size());
  copies_.push_back(copy);
  next_.push_back(first_at_[copy.begin]);
  first_at_[copy.begin] = number;
}

bool CopyFinder::HasCopyAt(uint32_t begin, uint32_t distance) const {
  for (uint32_t number = FirstAt(begin); number != kNone;
       number = Next(number)) {
    if (Get(number).distance == distance) {
      return true;
    }
  }
  return false;
}

}  // namespace quire
