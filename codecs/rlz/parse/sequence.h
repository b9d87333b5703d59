// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_PARSE_SEQUENCE_H_
#define QUIRE_CODECS_RLZ_PARSE_SEQUENCE_H_

#include <cstdint>
#include <vector>

namespace quire {

// One step of a parse: some bytes as they are, then a copy of earlier text.
// The unit of Zstandard's format (RFC 8878, section 3.1.1.4), with the distance
// itself in place of its code.
struct Sequence {
  // Bytes taken from the block itself; may be 0.
  uint32_t literal_run = 0;
  // Bytes copied. 0 only in a parse's last step, whose literals end the block.
  uint32_t match_length = 0;
  // How far before the copy's target its source begins: up to the target's
  // position in the block it lies in the block, beyond that in the dictionary,
  // which ends where the block begins. A copy may run over from one into the
  // other, and into its own target.
  uint32_t distance = 0;

  bool operator==(const Sequence&) const = default;
};

// A whole block, in order. The last step has match_length and distance 0.
using SequenceList = std::vector<Sequence>;

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PARSE_SEQUENCE_H_
