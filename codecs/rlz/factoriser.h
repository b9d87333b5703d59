// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_FACTORISER_H_
#define QUIRE_CODECS_RLZ_FACTORISER_H_

#include "codecs/base/bytes.h"
#include "codecs/rlz/factor.h"
#include "codecs/rlz/suffix_index.h"

namespace quire {

// Cuts `block` into factors from left to right, each the longest there is in
// the dictionary that `index` was built of; a byte that does not occur in it
// becomes a literal. Among equally long matches it takes the index's choice.
// The text of the factors is the block; there is at least one for a block that
// is not empty, and at most block.size().
//
// `factors` is overwritten; its memory is reused.
// Thread-safe.
void FactoriseGreedily(const SuffixIndex& index, ByteView block,
                       FactorList& factors);

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_FACTORISER_H_
