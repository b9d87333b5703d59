// SPDX-License-Identifier: Apache-2.0
//
// Counts the compressed members that blocks store as their text.
#ifndef QUIRE_CODECS_PAYLOAD_INFLATED_COUNT_H_
#define QUIRE_CODECS_PAYLOAD_INFLATED_COUNT_H_

#include <array>
#include <cstdint>

#include "codecs/base/bytes.h"
#include "codecs/deflate/deflate_recipe.h"

namespace quire {

// Members of one container that are stored as their text.
struct InflatedMembers {
  uint64_t count = 0;
  // Size of the members, in bytes.
  uint64_t size_bytes = 0;
  // Their share of the blocks' payloads, in bytes: of each payload, the
  // fraction that the members' text is of the block's text.
  uint64_t stored_size_bytes = 0;

  bool operator==(const InflatedMembers&) const = default;
};

// Indexed by DeflateContainer. Thread-compatible.
class InflatedCount {
 public:
  // `payload` begins with a recipe. A malformed recipe may add any numbers.
  void Add(ByteView payload);
  void Add(const InflatedCount& other);

  const InflatedMembers& of(DeflateContainer container) const {
    return members_[static_cast<size_t>(container)];
  }

 private:
  std::array<InflatedMembers, kDeflateContainerCount> members_ = {};
};

}  // namespace quire

#endif  // QUIRE_CODECS_PAYLOAD_INFLATED_COUNT_H_
