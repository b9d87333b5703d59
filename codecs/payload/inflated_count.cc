// SPDX-License-Identifier: Apache-2.0
#include "codecs/payload/inflated_count.h"

#include <algorithm>

#include "codecs/base/varint.h"
#include "codecs/payload/recipe.h"

namespace quire {

void InflatedCount::Add(ByteView payload) {
  ByteView head = payload;
  bool is_whole = true;
  const auto take = [&]() -> uint64_t {
    const auto number = TakeVarint(head);
    is_whole &= number.ok();
    return number.value_or(0);
  };
  const uint64_t count = take();
  if (count == 0) {
    return;
  }
  const uint64_t text_size = take();
  if (text_size == 0 || text_size > kInflatedLargeSizeMax) {
    return;
  }
  for (uint64_t i = 0; i < count && is_whole; ++i) {
    take();
    const uint64_t container = take() & 3;
    const uint64_t size = take();
    const uint64_t member_text_size = std::min(take(), text_size);
    is_whole &= head.size() >= sizeof(uint32_t);
    head = head.subspan(std::min(head.size(), sizeof(uint32_t)));
    if (is_whole && container < members_.size()) {
      InflatedMembers& members = members_[container];
      ++members.count;
      members.size_bytes += size;
      members.stored_size_bytes +=
          payload.size() * member_text_size / text_size;
    }
  }
}

void InflatedCount::Add(const InflatedCount& other) {
  for (size_t i = 0; i < members_.size(); ++i) {
    members_[i].count += other.members_[i].count;
    members_[i].size_bytes += other.members_[i].size_bytes;
    members_[i].stored_size_bytes += other.members_[i].stored_size_bytes;
  }
}

}  // namespace quire
