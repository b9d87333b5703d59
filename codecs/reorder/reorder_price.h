// SPDX-License-Identifier: Apache-2.0
//
// Decides which parts of a text to store elsewhere: the saving, against the
// further blocks that reads then touch.
#ifndef QUIRE_CODECS_REORDER_REORDER_PRICE_H_
#define QUIRE_CODECS_REORDER_REORDER_PRICE_H_

#include <cstdint>
#include <vector>

#include "codecs/reorder/offset_list.h"
#include "codecs/reorder/stored_run.h"

namespace quire {

// Cost of a further block, in bytes of text: an eighth of a range of 16 KiB,
// whose read it prolongs by as much again. At half this price an archive of
// several versions without a dictionary is a twentieth smaller, and its
// documents take a fifth longer to read.
inline constexpr uint64_t kJumpPriceBytes = (16 << 10) / 8;

// Consecutive duplicates of this size pay for the jump there and back.
inline constexpr uint64_t kWorthwhileDuplicateSizeBytes = 2 * kJumpPriceBytes;

// Savings and costs in bytes of text that an archive need not store, or might
// store in addition. Pure.
struct ReorderPrice {
  // Text per block, in bytes.
  uint32_t block_size_bytes = 0;

  // Saving if `size_bytes` of text are next to text with which they share
  // `shared_count` super-features.
  static double Saved(uint64_t size_bytes, int shared_count);

  // Cost of text that ends at `from` in the stored text and continues at `to`.
  double OfJump(uint64_t from, uint64_t to) const;
};

// A unit is a part of the stored text that moves as a whole; it may move to the
// cluster's first unit.
struct MovableUnits {
  // Offsets of the units, the first at 0.
  const OffsetList& offsets;
  uint64_t text_size_bytes = 0;
  // First unit of each unit's cluster.
  const std::vector<uint32_t>& leaders;
  // Number of super-features that each unit shares with its cluster.
  const std::vector<uint8_t>& shared_counts;
};

// Returns for each unit whether it should move. The choice maximises the saving
// of all moves less the price of all jumps, over each run of units that are new
// in the text. `runs` are those of the text. Text that occurred before, or is
// part of a unit, is followed by a decision independent of everything before
// it. Linear time, except for finding that text; one byte of memory per unit.
// Pure. REQUIRES: the first byte of each unit comes after those of all earlier
// units and before all other bytes of the unit.
std::vector<bool> ChooseMoves(const MovableUnits& units,
                              const std::vector<StoredRun>& runs,
                              const ReorderPrice& price);

}  // namespace quire

#endif  // QUIRE_CODECS_REORDER_REORDER_PRICE_H_
