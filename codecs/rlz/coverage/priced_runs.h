// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_COVERAGE_PRICED_RUNS_H_
#define QUIRE_CODECS_RLZ_COVERAGE_PRICED_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace quire {

// A k-mer of some text (kmer_sampler.h) with a worth above 0.
struct WorthyKmer {
  // Offset of its end in the text, in bytes.
  uint32_t end = 0;
  // Worth of all its bytes together, in the unit of prices.
  uint32_t worth = 0;
};

// A run of text, from the beginning of a k-mer to the end of a k-mer.
struct PricedRun {
  // In bytes.
  uint32_t begin = 0;
  uint32_t end = 0;
  // Its k-mers, by index: [kmer_begin, kmer_end).
  size_t kmer_begin = 0;
  size_t kmer_end = 0;
  // Worth less price, in kKmerSizeBytes-ths of the unit.
  int64_t gain = 0;
};

// Chooses from a text the runs that are worth their price. Keeps its memory;
// Thread-compatible.
class RunFinder {
 public:
  // `kmer_count_max` is the limit on the k-mers of Find().
  explicit RunFinder(size_t kmer_count_max) {
    steps_.reserve(kmer_count_max);
    runs_.reserve(kmer_count_max);
  }

  // Returns the runs with the largest total gain if kKmerSizeBytes bytes of
  // text cost `price` and beginning a run costs as much as `start_size` more
  // bytes. The worth of a byte is its share of the first k-mer that covers it.
  // Runs are in order and do not overlap; they are valid until the next call.
  // REQUIRES: ends of `kmers` strictly ascend, from kKmerSizeBytes on.
  const std::vector<PricedRun>& Find(std::span<const WorthyKmer> kmers,
                                     uint32_t price, uint32_t start_size);

  static constexpr size_t MemoryBytesFor(size_t kmer_count_max) {
    return sizeof(RunFinder) +
           kmer_count_max * (sizeof(Step) + sizeof(PricedRun));
  }

 private:
  struct Step {
    // Maximum gain of this k-mer and those before it.
    int64_t gain = 0;
    // Maximum gain if the last run ends with this k-mer.
    int64_t gain_inside = 0;
    // The first k-mer of that run.
    size_t run_begin = 0;
    bool ends_run = false;
  };

  std::vector<Step> steps_;
  std::vector<PricedRun> runs_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_COVERAGE_PRICED_RUNS_H_
