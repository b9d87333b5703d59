// SPDX-License-Identifier: Apache-2.0
//
// The shortest codes that a symbol table allows for a text.
#ifndef QUIRE_CODECS_FSST_ENCODE_FSST_OPTIMAL_PARSE_H_
#define QUIRE_CODECS_FSST_ENCODE_FSST_OPTIMAL_PARSE_H_

#include <cstddef>
#include <cstdint>

#include "codecs/base/bytes.h"
#include "codecs/fsst/table/symbol_matcher.h"
#include "codecs/fsst/table/symbol_table.h"

namespace quire {

// Dynamic programming from the end of a piece to its front: at each place the
// symbol, or the escape, with which the rest becomes shortest. Of several such
// the longest symbol is taken, and a symbol before an escape. Time is linear,
// whatever the table: 35 to 120 MB/s on the paper's columns, about a quarter of
// the speed of taking the longest symbol everywhere, for codes shorter by 2-7 %
// where the table was trained for it and by less otherwise.
// Immutable after construction: thread-safe.
// Source: the alternative that the FSST paper dismisses in footnote 1. There it
// was tried on tables that were not trained for it.
class FsstOptimalParse {
 public:
  explicit FsstOptimalParse(const SymbolTable& table);

  // Encodes `piece`, which is not cut, to the front of `codes`; the size of the
  // codes in bytes, which is never more than that of any other codes of this
  // table for `piece`.
  // REQUIRES: piece.size() <= kFsstStringSizeMax, space for 2 * piece.size()
  // bytes at `codes`, no overlap.
  size_t Encode(ByteView piece, uint8_t* codes) const;

 private:
  SymbolMatcher matcher_;  // whose indexes are the codes
};

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_ENCODE_FSST_OPTIMAL_PARSE_H_
