// SPDX-License-Identifier: Apache-2.0
//
// Gain and loss of symbols in the shortest parse of a piece.
#ifndef QUIRE_CODECS_FSST_TRAINING_PARSE_LATTICE_H_
#define QUIRE_CODECS_FSST_TRAINING_PARSE_LATTICE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "codecs/base/bytes.h"
#include "codecs/base/endian.h"
#include "codecs/fsst/table/symbol_matcher.h"
#include "codecs/fsst/table/symbol_table.h"
#include "codecs/fsst/training/training_sample.h"

namespace quire {

// All parses of one piece: for each offset, the fewest bytes of codes for the
// text before it and after it. The best parse with a given step is the sum of
// both sides and the step.
// Thread-compatible. 6 KB, no other memory.
class ParseLattice {
 public:
  // Sets the piece and the symbols for the calls below. The bytes of `piece`
  // must stay valid until the last of them.
  // REQUIRES: 1 <= piece.size() <= TrainingSample::kPieceSizeBytesMax, and
  // TrainingSample::kReadableBehindBytes readable after it.
  void Parse(ByteView piece, const SymbolMatcher& matcher);

  // Size of the shortest parse, in bytes of codes.
  uint32_t SmallestSize() const { return behind_[0]; }

  // Calls visit(index, loss) for each symbol of a shortest parse. `loss` is how
  // much longer the piece becomes without the symbol at that offset.
  template <typename Visit>
  void ForEachLoss(Visit visit) const;

  // Calls visit(symbol, gain) for each string that would make the piece shorter
  // as a symbol at one offset.
  template <typename Visit>
  void ForEachGain(Visit visit) const;

 private:
  // Size of the shortest parse without the symbol of `symbol_size` bytes at
  // `at`.
  uint32_t SizeAround(size_t at, size_t symbol_size) const;

  struct Step {
    uint16_t index;  // SymbolMatcher::kNone: an escape
    uint16_t size;
  };

  ByteView piece_;
  // By offset: bit i is set if a symbol of i + 1 bytes matches.
  std::array<uint8_t, TrainingSample::kPieceSizeBytesMax> sizes_;
  // First step of the shortest parse of the rest.
  std::array<Step, TrainingSample::kPieceSizeBytesMax> steps_;
  // Fewest bytes of codes for the text before each offset, and after it.
  std::array<uint16_t, TrainingSample::kPieceSizeBytesMax + 1> before_;
  std::array<uint16_t, TrainingSample::kPieceSizeBytesMax + 1> behind_;
};

template <typename Visit>
void ParseLattice::ForEachLoss(Visit visit) const {
  for (size_t i = 0; i < piece_.size(); i += steps_[i].size) {
    if (steps_[i].index != SymbolMatcher::kNone) {
      visit(steps_[i].index, SizeAround(i, steps_[i].size) - SmallestSize());
    }
  }
}

template <typename Visit>
void ParseLattice::ForEachGain(Visit visit) const {
  for (size_t i = 0; i < piece_.size(); ++i) {
    const auto word = LoadLittleEndian<uint64_t>(piece_.data() + i);
    const size_t size_max = std::min(kFsstSymbolSizeMax, piece_.size() - i);
    for (size_t size = 1; size <= size_max; ++size) {
      const uint32_t with = before_[i] + 1u + behind_[i + size];
      if (with < SmallestSize() && (sizes_[i] >> (size - 1) & 1) == 0) {
        visit(FsstSymbol{.bytes = FirstBytes(word, size),
                         .size = static_cast<uint8_t>(size)},
              SmallestSize() - with);
      }
    }
  }
}

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_TRAINING_PARSE_LATTICE_H_
