// SPDX-License-Identifier: Apache-2.0
#include "codecs/reorder/chunk_clusters.h"

#include <cstddef>

namespace quire {

std::vector<uint32_t> OrderByLeader(std::vector<uint32_t> leaders,
                                    const std::vector<bool>& is_joined) {
  // A leader may have joined another cluster; it precedes the chunks that it
  // leads.
  for (size_t i = 0; i < leaders.size() && !is_joined.empty(); ++i) {
    leaders[i] = is_joined[i]      ? leaders[i - 1]
                 : leaders[i] == i ? leaders[i]
                                   : leaders[leaders[i]];
  }
  // Count first: where each cluster begins.
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
  firsts_.clear();
  for (const uint64_t feature : features) {
    firsts_.push_back(feature == 0 ? number : first_with_.Add(feature, number));
  }
  // The successor of the chunk that the last one resembled, if this one
  // resembles it.
  const uint32_t expected = resembled_ + 1;
  uint32_t found = number;
  for (const uint32_t first : firsts_) {
    if (first != number && (found == number || first == expected)) {
      found = first;
    }
  }
  resembled_ = found;
  leaders_.push_back(found == number ? number : leaders_[found]);
  uint8_t shared_count = 0;
  for (const uint32_t first : firsts_) {
    shared_count += first != number && leaders_[first] == leaders_.back();
  }
  shared_counts_.push_back(shared_count);
}

}  // namespace quire
