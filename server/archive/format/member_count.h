// SPDX-License-Identifier: GPL-3.0-or-later
//
// Counts the blocks of each member of codec auto.
#ifndef QUIRE_SERVER_ARCHIVE_FORMAT_MEMBER_COUNT_H_
#define QUIRE_SERVER_ARCHIVE_FORMAT_MEMBER_COUNT_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "server/archive/format/archive_description.h"
#include "server/archive/format/block_frame.h"

namespace quire {

// Returns the CodecId of the member of a payload of codec auto: copy for the
// text itself, auto for a payload that may hold several members.
// `has_partitions` is true if the archive's blocks have partitions. The result
// is not checked.
uint8_t MemberOf(const Payload& payload, bool has_partitions);

// Adds counts of one container to those of all, in order of container.
void AddFoundMembers(const FoundMembers& added, std::vector<FoundMembers>& all);

// Thread-compatible.
class MemberCount {
 public:
  MemberCount() = default;

  // Starts with these counts, in order of codec.
  explicit MemberCount(std::vector<MemberBlocks> members)
      : members_(std::move(members)) {}

  // Adds a block of `size_bytes` of text.
  void Add(uint8_t member, uint64_t size_bytes, uint64_t stored_size_bytes) {
    Add({.codec = static_cast<CodecId>(member),
         .block_count = 1,
         .size_bytes = size_bytes,
         .stored_size_bytes = stored_size_bytes});
  }

  void Add(const MemberBlocks& added);

  // Removes a block that was added. Errors: DataLoss  the counts that MANIFEST
  // started with do not have it.
  absl::Status Remove(uint8_t member, uint64_t size_bytes,
                      uint64_t stored_size_bytes);

  // Members with blocks, in order of codec.
  const std::vector<MemberBlocks>& members() const { return members_; }

 private:
  std::vector<MemberBlocks> members_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FORMAT_MEMBER_COUNT_H_
