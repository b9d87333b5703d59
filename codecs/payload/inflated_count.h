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
  // Of the members, in bytes.
  uint64_t size_bytes = 0;
  // What they take: of each block's payload the part that their text is of its
  // text. Bytes.
  uint64_t stored_size_bytes = 0;

  bool operator==(const InflatedMembers&) const = default;
};

// By DeflateContainer. Thread-compatible.
class InflatedCount {
 public:
  // `payload` begins with a recipe. A malformed one adds nothing, or any
  // numbers.
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
