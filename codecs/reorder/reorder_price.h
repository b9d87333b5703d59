// SPDX-License-Identifier: Apache-2.0
//
// Which parts of a text are worth storing elsewhere: what that saves, against
// the further blocks that reads then touch.
#ifndef QUIRE_CODECS_REORDER_REORDER_PRICE_H_
#define QUIRE_CODECS_REORDER_REORDER_PRICE_H_

#include <cstdint>
#include <vector>

#include "codecs/reorder/offset_list.h"
#include "codecs/reorder/stored_run.h"

namespace quire {

// What it is worth, in bytes of text, that a range of 16 KiB does not touch a
// further block, which takes nearly as long again: an eighth of the range. With
// half of that an archive of several versions, without a dictionary, is a
// twentieth smaller, and its documents take a fifth longer to read.
inline constexpr uint64_t kJumpPriceBytes = (16 << 10) / 8;

// Duplicates of that size in a row are worth the way there and back.
inline constexpr uint64_t kWorthwhileDuplicateSizeBytes = 2 * kJumpPriceBytes;

// Savings and costs are in bytes of text: what an archive has to store of it,
// or might store more. Pure.
struct ReorderPrice {
  // Text in a block.
  uint32_t block_size_bytes = 0;

  // What is saved where `size_bytes` of text stand next to text with which they
  // share that many of their super-features.
  static double Saved(uint64_t size_bytes, int shared_count);

  // Of text that ends at one offset of the stored text and goes on at another.
  double OfJump(uint64_t from, uint64_t to) const;
};

// A unit, a part of the stored text that moves as a whole, may move behind the
// first unit of its cluster.
struct MovableUnits {
  // Where they begin, the first at 0.
  const OffsetList& offsets;
  uint64_t text_size_bytes = 0;
  // Of each unit, the first of its cluster.
  const std::vector<uint32_t>& leaders;
  // Of each unit, how many super-features it shares with its cluster.
  const std::vector<uint8_t>& shared_counts;
};

// Of each unit, whether it should move: what all moves save less the price of
// all jumps is greatest, over each stretch of units that are new in the text.
// `runs` are those of the text; what follows text that came before, or is a
// part of it, is decided on without regard to what is before that. Time is
// linear but for finding that text; memory a byte a unit. Pure. REQUIRES: the
// first byte of each unit comes after those of all units before it and before
// all other bytes of the unit.
std::vector<bool> ChooseMoves(const MovableUnits& units,
                              const std::vector<StoredRun>& runs,
                              const ReorderPrice& price);

}  // namespace quire

#endif  // QUIRE_CODECS_REORDER_REORDER_PRICE_H_
