// SPDX-License-Identifier: Apache-2.0
//
// A dictionary of chosen text: the text that the collection repeats most and
// that is expensive to repeat.
#ifndef QUIRE_CODECS_RLZ_COVERAGE_DICTIONARY_H_
#define QUIRE_CODECS_RLZ_COVERAGE_DICTIONARY_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

#include "codecs/base/numbered_work.h"
#include "codecs/rlz/dictionary_builder.h"

namespace quire {

// All but `workers` affect the dictionary.
struct CoverageDictionaryOptions {
  // Maximum size in bytes, at most kDictionarySizeBytesMax. The dictionary is
  // smaller if less text than that is worth including.
  uint64_t dictionary_size_bytes = 16 << 20;
  // Size of the blocks that will be coded with it: repetitions within a block
  // cost little without a dictionary. Clamped to 16 KiB to 64 KiB.
  uint64_t block_size_bytes = 64 << 10;
  // Minimum worth, in bits, of each 32 bytes in the dictionary: the bits that
  // they save by the count of the first pass. At least 1. Text below it stays
  // out, even where there is space.
  uint32_t worth_bits_min = 2;
  // They sample k-mers. Each after the first takes 3 MiB of memory.
  Workers workers = {};
};

// Makes two passes. The first counts: it samples k-mers, runs of 32 bytes, by
// their contents (kmer_sampler.h), and adds up the cost of each one's
// repetitions in blocks without a dictionary (block_cost.h, repeat_table.h).
// The second collects: it takes the runs of text that are worth most for their
// size, counting each k-mer for the first run that has it (priced_runs.h,
// segment_pool.h). The runs are joined in the order of the text. A text no
// larger than the dictionary is taken whole, in one pass.
//
// Text that occurs once is worth nothing, and is only included between repeated
// text. This keeps compressed text out unless it occurs more than once;
// repeated, it is worth more than any other.
//
// Memory: about eight times the dictionary's size, and 2 MiB; less if the text
// is not much larger, or if the dictionary is above 256 MiB, since fewer k-mers
// are then counted. MemoryBytesMax() is exact.
//
// `text_size_bytes` is the size of the whole text, which must be known. The
// passes take 4 and 2 ns per byte.
// Errors: InvalidArgument  an option out of range.
absl::StatusOr<std::unique_ptr<DictionaryBuilder>>
MakeCoverageDictionaryBuilder(const CoverageDictionaryOptions& options,
                              uint64_t text_size_bytes);

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_COVERAGE_DICTIONARY_H_
