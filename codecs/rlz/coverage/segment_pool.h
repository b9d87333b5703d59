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

// Candidates for a dictionary's text, collected in one pass. A segment is taken
// if the worth of its k-mers exceeds the price of its text; these k-mers are
// then worth nothing elsewhere. When the segments reach twice the dictionary's
// size, the price rises until the segments worth it have the dictionary's size;
// the others are dropped and release their k-mers. More candidates can only
// raise the price, so that no dropped segment would have stayed in the end.
// Deterministic. Thread-compatible.
class SegmentPool {
 public:
  // `block_size_max` and `interval` are those of the later blocks and k-mers.
  // `price_min`, at least 1, is the minimum price of kKmerSizeBytes bytes of
  // text. `table` has the worth of k-mers, and outlives the pool.
  SegmentPool(uint64_t dictionary_size_bytes, size_t block_size_max,
              uint32_t interval, uint32_t price_min, RepeatTable* table);

  // Peak memory of a pool of that size, in bytes.
  static size_t MemoryBytesFor(uint64_t dictionary_size_bytes,
                               size_t block_size_max, uint32_t interval);

  // Takes the runs of `block` that are worth their price. Does not keep
  // `block`.
  void Add(ByteView block, std::span<const SampledKmer> kmers);

  // Returns the best segments in the order in which they were added; at most
  // the dictionary's size. The pool is unusable afterwards.
  std::string Take();

 private:
  struct Segment {
    uint32_t size = 0;
    uint32_t kmer_count = 0;
  };

  struct Candidate {
    // Worth per KiB of text.
    uint64_t worth = 0;
    // Index of the segment.
    uint32_t segment = 0;
  };

  // State of a loop over all segments.
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
  // Returns the runs of a segment that are worth the price.
  const std::vector<PricedRun>& RunsOf(const Segment& segment, size_t kmer,
                                       uint32_t price);
  uint64_t SizeAtPrice(uint32_t price);
  uint32_t PriceOfDictionarySize();
  void KeepWorthy(uint32_t price);
  void KeepRun(Place from, const PricedRun& run, Place to);
  // Returns the remaining size of each segment if the most worthy text fills
  // the dictionary.
  std::vector<uint32_t> SizesThatFit() const;
  void DropLeastWorthy();
  // Shrinks the pool to the dictionary's size.
  void Shrink();

  const uint64_t dictionary_size_;
  // Cost of beginning a segment, in bytes of text.
  const uint32_t start_size_;
  RepeatTable* const table_;
  // Price of kKmerSizeBytes bytes of text, in the unit of the table's worths.
  uint32_t price_;
  RunFinder finder_;
  // K-mers of the current block.
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
