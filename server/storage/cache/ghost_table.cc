// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/cache/ghost_table.h"

#include <algorithm>
#include <limits>

namespace quire {

GhostTable::GhostTable(size_t ghost_count)
    : buckets_(ghost_count * kBytesPerGhost / sizeof(Bucket)) {}

GhostTable::Bucket* GhostTable::BucketOf(uint64_t hash) {
  return buckets_.empty() ? nullptr : &buckets_[hash % buckets_.size()];
}

uint32_t GhostTable::AgeOf(const Slot& slot) const {
  // Numbers wrap, and so does the difference.
  return slot.number == 0 ? std::numeric_limits<uint32_t>::max()
                          : last_number_ - slot.number;
}

void GhostTable::Add(uint64_t hash) {
  Bucket* bucket = BucketOf(hash);
  if (bucket == nullptr) {
    return;
  }
  Slot& oldest = *std::max_element(
      bucket->slots.begin(), bucket->slots.end(),
      [this](const Slot& a, const Slot& b) { return AgeOf(a) < AgeOf(b); });
  // Skip 0, which means empty.
  last_number_ = std::max<uint32_t>(last_number_ + 1, 1);
  oldest = {static_cast<uint32_t>(hash >> 32), last_number_};
}

bool GhostTable::Take(uint64_t hash, uint64_t age_max) {
  Bucket* bucket = BucketOf(hash);
  if (bucket == nullptr) {
    return false;
  }
  for (Slot& slot : bucket->slots) {
    if (slot.number != 0 && slot.tag == static_cast<uint32_t>(hash >> 32)) {
      const bool is_young = AgeOf(slot) < age_max;
      slot = {};
      return is_young;
    }
  }
  return false;
}

}  // namespace quire
