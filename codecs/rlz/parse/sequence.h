// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_PARSE_SEQUENCE_H_
#define QUIRE_CODECS_RLZ_PARSE_SEQUENCE_H_

#include <cstdint>
#include <vector>

namespace quire {

// One step of a parse: literal bytes, then a copy of earlier text. The unit of
// Zstandard's format (RFC 8878, section 3.1.1.4), with the distance instead of
// its code.
struct Sequence {
  // Literal bytes of the block; may be 0.
  uint32_t literal_run = 0;
  // Bytes copied. 0 only in a parse's last step, whose literals end the block.
  uint32_t match_length = 0;
  // Distance from the copy's target back to its source. The source is in the
  // block up to the target's position, beyond that in the dictionary, which
  // ends where the block begins. A copy may cross from one into the other, and
  // overlap its own target.
  uint32_t distance = 0;

  bool operator==(const Sequence&) const = default;
};

// A whole block, in order. The last step has match_length and distance 0.
using SequenceList = std::vector<Sequence>;

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PARSE_SEQUENCE_H_
