// SPDX-License-Identifier: Apache-2.0
//
// The codecs that `auto` may choose, and their costs: the sum of storing,
// reading and building a block, in bytes. A second of work is worth as many
// bytes as the objective states, so that the sum is
//
//   stored bytes + block / p_d * (bytes per second of decoding)
//                + block / p_c * (bytes per second of encoding)
//
// with the members' speeds p_c and p_d out of a table: choices depend on the
// data alone, never on a clock. After equation 2 of "Data Compression for
// Climate Data" (Kuhn, Kunkel, Ludwig), section 2.1.
#ifndef QUIRE_CODECS_AUTO_MEMBER_CHOICE_H_
#define QUIRE_CODECS_AUTO_MEMBER_CHOICE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codecs/block_codec.h"

namespace quire {

// The levels of `auto`. Values are those of CodecSpec::level.
enum class AutoObjective {
  // Most documents per second; a byte on disk is cheap.
  kSpeed = 1,
  // The smallest archive but where a little more is read much faster.
  kBalanced = 2,
  // The smallest archive.
  kArchive = 3,
};

inline constexpr std::array kAutoObjectives = {
    AutoObjective::kSpeed, AutoObjective::kBalanced, AutoObjective::kArchive};

// Speeds of a codec, in bytes of text per second on one core. Only their ratios
// matter.
struct AutoSpeed {
  uint64_t encode = 0;
  uint64_t decode = 0;
};

inline constexpr size_t kAutoMemberCount = 5;

// A codec that blocks of `auto` may be in.
struct AutoMember {
  CodecSpec spec;
  AutoSpeed speed;
};

// In order of id, the same codecs for every objective: copy, lz4, xz, numeric,
// rlz.
std::span<const AutoMember, kAutoMemberCount> AutoMembers(
    AutoObjective objective);

// Returns the cost of encoding and decoding `raw_size` bytes of text, in bytes.
// REQUIRES: raw_size <= kBlockSizeBytesMax; `speed` is that of an AutoMember.
uint64_t TimeCost(const AutoSpeed& speed, AutoObjective objective,
                  size_t raw_size);

}  // namespace quire

#endif  // QUIRE_CODECS_AUTO_MEMBER_CHOICE_H_
