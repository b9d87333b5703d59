// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/format/member_count.h"

#include <algorithm>

namespace quire {

uint8_t MemberOf(const Payload& payload, bool has_partitions) {
  if (payload.is_raw || payload.bytes.empty()) {
    return static_cast<uint8_t>(CodecId::kCopy);
  }
  return has_partitions || payload.has_recipe
             ? static_cast<uint8_t>(CodecId::kAuto)
             : payload.bytes[0];
}

void MemberCount::Add(uint8_t member, uint64_t size_bytes,
                      uint64_t stored_size_bytes) {
  const auto codec = static_cast<CodecId>(member);
  auto found =
      std::ranges::lower_bound(members_, codec, {}, &MemberBlocks::codec);
  if (found == members_.end() || found->codec != codec) {
    found = members_.insert(found, {.codec = codec});
  }
  ++found->block_count;
  found->size_bytes += size_bytes;
  found->stored_size_bytes += stored_size_bytes;
}

void MemberCount::Remove(uint8_t member, uint64_t size_bytes,
                         uint64_t stored_size_bytes) {
  const auto found = std::ranges::find(members_, static_cast<CodecId>(member),
                                       &MemberBlocks::codec);
  if (found == members_.end()) {
    return;
  }
  found->size_bytes -= std::min(found->size_bytes, size_bytes);
  found->stored_size_bytes -=
      std::min(found->stored_size_bytes, stored_size_bytes);
  if (--found->block_count == 0) {
    members_.erase(found);
  }
}

}  // namespace quire
