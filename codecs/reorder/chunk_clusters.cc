// SPDX-License-Identifier: Apache-2.0
#include "codecs/reorder/chunk_clusters.h"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace quire {

std::vector<uint32_t> OrderByLeader(const std::vector<uint32_t>& leaders) {
  // Counts first: where each cluster begins.
  std::vector<uint32_t> next(leaders.size() + 1, 0);
  for (const uint32_t leader : leaders) {
    ++next[leader + 1];
  }
  for (size_t i = 1; i < next.size(); ++i) {
    next[i] += next[i - 1];
  }
  std::vector<uint32_t> order(leaders.size());
  for (size_t i = 0; i < leaders.size(); ++i) {
    order[next[leaders[i]]++] = static_cast<uint32_t>(i);
  }
  return order;
}

void ChunkClusters::Add(absl::Span<const uint64_t> features) {
  const auto number = static_cast<uint32_t>(leaders_.size());
  // What follows what the last chunk resembled, if this one resembles that.
  const uint32_t expected = resembled_ + 1;
  uint32_t found = number;
  for (const uint64_t feature : features) {
    if (feature == 0) {
      continue;
    }
    const std::optional<uint32_t> known = first_with_.Find(feature);
    if (known.has_value() && (found == number || *known == expected)) {
      found = *known;
    }
  }
  resembled_ = found;
  leaders_.push_back(found == number ? number : leaders_[found]);
  for (const uint64_t feature : features) {
    if (feature != 0) {
      first_with_.Add(feature, number);
    }
  }
}

std::vector<uint32_t> ChunkClusters::Order(
    const std::vector<bool>& is_joined) const {
  // Leaders come before those they lead, so theirs are known.
  std::vector<uint32_t> leaders(leaders_.size());
  for (size_t i = 0; i < leaders.size(); ++i) {
    const bool joined = i > 0 && !is_joined.empty() && is_joined[i];
    leaders[i] = joined             ? leaders[i - 1]
                 : leaders_[i] == i ? leaders_[i]
                                    : leaders[leaders_[i]];
  }
  return OrderByLeader(leaders);
}

}  // namespace quire
