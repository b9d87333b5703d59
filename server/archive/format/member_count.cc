// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/format/member_count.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace quire {

uint8_t MemberOf(const Payload& payload, bool has_partitions) {
  if (payload.is_raw || payload.bytes.empty()) {
    return static_cast<uint8_t>(CodecId::kCopy);
  }
  return has_partitions || payload.has_recipe
             ? static_cast<uint8_t>(CodecId::kAuto)
             : payload.bytes[0];
}

void AddFoundMembers(const FoundMembers& added,
                     std::vector<FoundMembers>& all) {
  auto found = std::ranges::lower_bound(all, added.container, {},
                                        &FoundMembers::container);
  if (found == all.end() || found->container != added.container) {
    all.insert(found, added);
  } else {
    *found += added;
  }
}

void MemberCount::Add(const MemberBlocks& added) {
  auto found =
      std::ranges::lower_bound(members_, added.codec, {}, &MemberBlocks::codec);
  if (found == members_.end() || found->codec != added.codec) {
    members_.insert(found, added);
    return;
  }
  found->block_count += added.block_count;
  found->size_bytes += added.size_bytes;
  found->stored_size_bytes += added.stored_size_bytes;
}

absl::Status MemberCount::Remove(uint8_t member, uint64_t size_bytes,
                                 uint64_t stored_size_bytes) {
  const auto found = std::ranges::find(members_, static_cast<CodecId>(member),
                                       &MemberBlocks::codec);
  // Counts of an untrusted manifest agree only in their sums.
  if (found == members_.end() || found->block_count == 0 ||
      found->size_bytes < size_bytes ||
      found->stored_size_bytes < stored_size_bytes) {
    return absl::DataLossError(absl::StrCat(
        "MANIFEST: member ", member, " has ",
        found == members_.end() ? 0 : found->block_count,
        " blocks, but there is one more; it is damaged or of another archive: "
        "run quired verify"));
  }
  found->size_bytes -= size_bytes;
  found->stored_size_bytes -= stored_size_bytes;
  if (--found->block_count == 0) {
    members_.erase(found);
  }
  return absl::OkStatus();
}

}  // namespace quire
