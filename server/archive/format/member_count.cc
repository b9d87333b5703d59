// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/format/member_count.h"

#include <algorithm>

namespace quire {

uint8_t MemberOf(const FramePayload& payload) {
  return payload.is_raw || payload.bytes.empty()
             ? static_cast<uint8_t>(CodecId::kCopy)
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

}  // namespace quire
