// SPDX-License-Identifier: GPL-3.0-or-later
//
// Counts what the members of codec auto hold of an archive.
#ifndef QUIRE_SERVER_ARCHIVE_FORMAT_MEMBER_COUNT_H_
#define QUIRE_SERVER_ARCHIVE_FORMAT_MEMBER_COUNT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/archive/format/archive_description.h"
#include "server/archive/format/block_frame.h"

namespace quire {

// The CodecId of the member of a payload of codec auto: copy for the text
// itself, auto for a payload that may hold several. `has_partitions` is whether
// the archive's blocks have partitions. The result is not checked.
uint8_t MemberOf(const Payload& payload, bool has_partitions);

// Thread-compatible.
class MemberCount {
 public:
  // A block of `size_bytes` of text.
  void Add(uint8_t member, uint64_t size_bytes, uint64_t stored_size_bytes);

  // In order of codec, those with blocks.
  const std::vector<MemberBlocks>& members() const { return members_; }

 private:
  std::vector<MemberBlocks> members_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FORMAT_MEMBER_COUNT_H_
