// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/paper/factor_priming.h"

#include <algorithm>
#include <utility>

#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "codecs/rlz/factoriser.h"
#include "codecs/rlz/suffix_index.h"

namespace quire {
namespace {

constexpr size_t kIndexedSizeMax = 1 << 20;
constexpr size_t kFactorisedSizeMax = 1 << 20;
// What deflate can reach back to (RFC 1951).
constexpr size_t kFactorCountMax = 32768 / sizeof(uint32_t);

// Different factors of one text have the same offset: the index sees to that.
struct CountedFactor {
  uint32_t count;
  uint32_t offset;
  uint32_t length;
};

// Those that occur more than once, the most frequent last; of equally frequent
// ones that last which occurs first latest.
std::vector<CountedFactor> FrequentFactors(const FactorList& factors) {
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, size_t> numbers;
  std::vector<CountedFactor> counted;
  for (size_t i = 0; i < factors.size(); ++i) {
    const uint32_t offset = factors.offsets[i];
    const uint32_t length = factors.lengths[i];
    if (length > 0) {
      const auto [found, is_new] =
          numbers.try_emplace({offset, length}, counted.size());
      if (is_new) {
        counted.push_back({.count = 0, .offset = offset, .length = length});
      }
      ++counted[found->second].count;
    }
  }
  std::erase_if(counted,
                [](const CountedFactor& factor) { return factor.count < 2; });
  std::ranges::stable_sort(counted, {}, &CountedFactor::count);
  if (counted.size() > kFactorCountMax) {
    counted.erase(counted.begin(),
                  counted.end() - static_cast<ptrdiff_t>(kFactorCountMax));
  }
  return counted;
}

}  // namespace

absl::StatusOr<std::unique_ptr<const FactorPriming>> FactorPriming::Make(
    ByteView dictionary) {
  std::unique_ptr<FactorPriming> priming(new FactorPriming(dictionary));
  const size_t indexed_size = std::min(dictionary.size() / 2, kIndexedSizeMax);
  QUIRE_ASSIGN_OR_RETURN(const auto index,
                         SuffixIndex::Build(dictionary.first(indexed_size)));
  const ByteView rest = dictionary.subspan(indexed_size);
  FactorList factors;
  FactoriseGreedily(
      *index, rest.first(std::min(rest.size(), kFactorisedSizeMax)), factors);
  for (const CountedFactor& factor : FrequentFactors(factors)) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      priming->offsets_.push_back(static_cast<char>(factor.offset >> shift));
    }
    AppendVarint(factor.length, priming->lengths_);
    priming->offset_of_text_.emplace(
        AsText(dictionary.subspan(factor.offset, factor.length)),
        factor.offset);
  }
  return priming;
}

void FactorPriming::UseKnownOffsets(const std::vector<uint32_t>& lengths,
                                    std::vector<uint32_t>& offsets) const {
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (lengths[i] > 0) {
      const auto known = offset_of_text_.find(
          AsText(dictionary_.subspan(offsets[i], lengths[i])));
      if (known != offset_of_text_.end()) {
        offsets[i] = known->second;
      }
    }
  }
}

size_t FactorPriming::MemoryBytes() const {
  return offsets_.capacity() + lengths_.capacity() +
         offset_of_text_.capacity() *
             sizeof(decltype(offset_of_text_)::value_type);
}

}  // namespace quire
