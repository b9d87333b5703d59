// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/coverage/priced_runs.h"

#include <algorithm>

#include "codecs/rlz/coverage/kmer_sampler.h"

namespace quire {

const std::vector<PricedRun>& RunFinder::Find(std::span<const WorthyKmer> kmers,
                                              uint32_t price,
                                              uint32_t start_size) {
  constexpr auto kSize = static_cast<int64_t>(kKmerSizeBytes);
  const int64_t start_cost = int64_t{price} * (kSize + int64_t{start_size});
  steps_.resize(kmers.size());
  runs_.clear();
  // Number of k-mers that end before k-mer i begins.
  size_t apart_count = 0;
  for (size_t i = 0; i < kmers.size(); ++i) {
    const int64_t worth = kmers[i].worth;
    while (kmers[apart_count].end + kKmerSizeBytes <= kmers[i].end) {
      ++apart_count;
    }
    Step& step = steps_[i];
    step.gain_inside = (apart_count == 0 ? 0 : steps_[apart_count - 1].gain) +
                       worth * kSize - start_cost;
    step.run_begin = i;
    step.gain = 0;
    if (i > 0) {
      const int64_t gap = kmers[i].end - kmers[i - 1].end;
      const int64_t continued = steps_[i - 1].gain_inside +
                                worth * std::min(gap, kSize) - price * gap;
      if (continued >= step.gain_inside) {
        step.gain_inside = continued;
        step.run_begin = steps_[i - 1].run_begin;
      }
      step.gain = steps_[i - 1].gain;
    }
    step.ends_run = step.gain_inside > step.gain;
    step.gain = std::max(step.gain, step.gain_inside);
  }
  // From the end: the last run, then the best before it.
  for (size_t i = kmers.size(); i > 0;) {
    const Step& step = steps_[i - 1];
    if (!step.ends_run) {
      --i;
      continue;
    }
    const uint32_t begin = kmers[step.run_begin].end - kKmerSizeBytes;
    size_t before = step.run_begin;
    while (before > 0 && kmers[before - 1].end > begin) {
      --before;
    }
    runs_.push_back(
        {.begin = begin,
         .end = kmers[i - 1].end,
         .kmer_begin = step.run_begin,
         .kmer_end = i,
         .gain = step.gain - (before == 0 ? 0 : steps_[before - 1].gain)});
    i = before;
  }
  std::reverse(runs_.begin(), runs_.end());
  return runs_;
}

}  // namespace quire
