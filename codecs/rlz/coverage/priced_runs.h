// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_COVERAGE_PRICED_RUNS_H_
#define QUIRE_CODECS_RLZ_COVERAGE_PRICED_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace quire {

// A k-mer of some text (kmer_sampler.h) that is worth something.
struct WorthyKmer {
  // Where it ends in the text, in bytes.
  uint32_t end = 0;
  // What all its bytes together are worth, in whatever unit prices have too.
  uint32_t worth = 0;
};

// A stretch of text, from the beginning of a k-mer to the end of one.
struct PricedRun {
  // In bytes.
  uint32_t begin = 0;
  uint32_t end = 0;
  // Of the k-mers, by index: [kmer_begin, kmer_end).
  size_t kmer_begin = 0;
  size_t kmer_end = 0;
  // What it is worth beyond its price, in kKmerSizeBytes-ths of the unit.
  int64_t gain = 0;
};

// Chooses from a text the runs that are worth their price.
// Memory stays with the object; Thread-compatible.
class RunFinder {
 public:
  // `kmer_count_max` of the k-mers that Find() will be given.
  explicit RunFinder(size_t kmer_count_max) {
    steps_.reserve(kmer_count_max);
    runs_.reserve(kmer_count_max);
  }

  // The runs that gain most together if kKmerSizeBytes bytes of text cost
  // `price` and beginning a run costs as much as `start_size` bytes more. Each
  // byte of a run is worth what it is in the k-mer that covers it first. Runs
  // are in order and do not overlap; they are valid until the next call.
  // REQUIRES: ends of `kmers` strictly ascend, from kKmerSizeBytes on.
  const std::vector<PricedRun>& Find(std::span<const WorthyKmer> kmers,
                                     uint32_t price, uint32_t start_size);

  static constexpr size_t MemoryBytesFor(size_t kmer_count_max) {
    return sizeof(RunFinder) +
           kmer_count_max * (sizeof(Step) + sizeof(PricedRun));
  }

 private:
  struct Step {
    // The most that is gained by this k-mer and those before it.
    int64_t gain = 0;
    // What of it is gained by a run that ends with this k-mer, if that is
    // where the last run ends.
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
