// SPDX-License-Identifier: Apache-2.0
//
// A dictionary of chosen text: of what the collection repeats most, and what is
// dear to repeat.
#ifndef QUIRE_CODECS_RLZ_COVERAGE_DICTIONARY_H_
#define QUIRE_CODECS_RLZ_COVERAGE_DICTIONARY_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

#include "codecs/rlz/dictionary_builder.h"

namespace quire {

// Affects the dictionary.
struct CoverageDictionaryOptions {
  // In bytes, at most kDictionarySizeBytesMax. The dictionary is not larger; it
  // is smaller if less than that is worth a place in it.
  uint64_t dictionary_size_bytes = 16 << 20;
  // Of the blocks that will be coded with it: what repeats within a block costs
  // little without a dictionary. Counts as 16 KiB if it is less, and as 64 KiB
  // if it is more.
  uint64_t block_size_bytes = 64 << 10;
  // Least worth, in bits, of each 32 bytes in the dictionary: what they save
  // by the count of the first pass. At least 1. Text that is worth less stays
  // out, even where there is space.
  uint32_t worth_bits_min = 2;
};

// Two passes. The first counts: it samples k-mers, stretches of 32 bytes, by
// their contents (kmer_sampler.h), and adds up for each what its repetitions
// would cost in blocks without a dictionary (block_cost.h,
// repeat_table.h). The second collects: it takes the runs of text that are
// worth most for their size, counting each k-mer for the first run that has it
// (priced_runs.h, segment_pool.h). They are joined in the order of the text. Of
// a text no larger than the dictionary it takes all, in one pass.
//
// What occurs once is worth nothing, and comes in only where it lies between
// what repeats. So text that came compressed is kept out, unless it is there
// more than once: then it is worth more than any other.
//
// Memory: about eight times the dictionary's size, and 2 MiB; less if the text
// is not much larger, or the dictionary is above 256 MiB, of which fewer k-mers
// are counted. MemoryBytesMax() says it exactly.
//
// `text_size_bytes` is the size of the whole text, which must be known. The
// passes take 4 and 2 ns a byte.
// Errors: InvalidArgument  an option out of range.
absl::StatusOr<std::unique_ptr<DictionaryBuilder>>
MakeCoverageDictionaryBuilder(const CoverageDictionaryOptions& options,
                              uint64_t text_size_bytes);

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_COVERAGE_DICTIONARY_H_
