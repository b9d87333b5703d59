// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_COVERAGE_SEGMENT_POOL_H_
#define QUIRE_CODECS_RLZ_COVERAGE_SEGMENT_POOL_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/rlz/coverage/kmer_sampler.h"
#include "codecs/rlz/coverage/priced_runs.h"
#include "codecs/rlz/coverage/repeat_table.h"

namespace quire {

// Candidates for a dictionary's text, while the collection passes by. A segment
// is taken where what its k-mers are worth exceeds the price of its text; these
// k-mers are then worth nothing elsewhere. When the segments reach twice the
// dictionary's size, the price rises until what is worth it has the
// dictionary's size, and the rest goes and gives its k-mers back. More
// candidates only ever make text dearer, so nothing goes that would have stayed
// in the end.
// Deterministic. Thread-compatible.
class SegmentPool {
 public:
  // `block_size_max` and `interval` are those of the blocks and k-mers to come.
  // `price_min`, at least 1, is the least price of kKmerSizeBytes bytes of
  // text. `table` has the worth of k-mers, and outlives the pool.
  SegmentPool(uint64_t dictionary_size_bytes, size_t block_size_max,
              uint32_t interval, uint32_t price_min, RepeatTable* table);

  // The most memory in bytes that a pool of that size ever holds.
  static size_t MemoryBytesFor(uint64_t dictionary_size_bytes,
                               size_t block_size_max, uint32_t interval);

  // Takes what is worth its price from `block`, which is not kept.
  void Add(ByteView block, std::span<const SampledKmer> kmers);

  // The best of all, in the order in which it was added; at most the
  // dictionary's size. The pool is of no more use.
  std::string Take();

 private:
  struct Segment {
    uint32_t size = 0;
    uint32_t kmer_count = 0;
  };

  struct Candidate {
    // Per KiB of text.
    uint64_t worth = 0;
    // By index.
    uint32_t segment = 0;
  };

  // What a loop over all segments looks at.
  struct Place {
    size_t text = 0;
    size_t kmer = 0;
  };

  static size_t TextSizeMax(uint64_t dictionary_size, size_t block_size_max);
  static size_t KmerCountMax(uint64_t dictionary_size, size_t block_size_max,
                             uint32_t interval);
  static size_t SegmentCountMax(uint64_t dictionary_size,
                                size_t block_size_max);

  void FindWorthy(std::span<const SampledKmer> kmers);
  // The runs of a segment that are worth the price.
  const std::vector<PricedRun>& RunsOf(const Segment& segment, size_t kmer,
                                       uint32_t price);
  uint64_t SizeAtPrice(uint32_t price);
  uint32_t PriceOfDictionarySize();
  void KeepWorthy(uint32_t price);
  void KeepRun(Place from, const PricedRun& run, Place to);
  // How much of each segment remains if what is worth most fills the
  // dictionary.
  std::vector<uint32_t> SizesThatFit() const;
  void DropLeastWorthy();
  // To the dictionary's size.
  void Shrink();

  const uint64_t dictionary_size_;
  // What it costs to begin a segment, in bytes of text.
  const uint32_t start_size_;
  RepeatTable* const table_;
  // Of kKmerSizeBytes bytes of text, in the unit of the table's worths.
  uint32_t price_;
  RunFinder finder_;
  // Of the block that is being added.
  std::vector<WorthyKmer> worthy_;
  std::vector<RepeatTable::Slot> worthy_slots_;
  // The segments, in the order of their text. Their texts are in `text_`, one
  // after the other, and likewise their k-mers, whose ends count from the
  // segment's begin.
  std::vector<Segment> segments_;
  std::string text_;
  std::vector<WorthyKmer> kmers_;
  std::vector<RepeatTable::Slot> slots_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_COVERAGE_SEGMENT_POOL_H_
