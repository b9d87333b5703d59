// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/factor.h"

#include "codecs/rlz/suffix_index.h"

namespace quire {

void FactoriseGreedily(const SuffixIndex& index, ByteView block,
                       FactorList& factors) {
  factors.Clear();
  while (!block.empty()) {
    const SuffixIndex::Match match = index.LongestMatch(block);
    if (match.length == 0) {
      factors.Add(block.front(), 0);
      block = block.subspan(1);
    } else {
      factors.Add(match.offset, match.length);
      block = block.subspan(match.length);
    }
  }
}

}  // namespace quire
