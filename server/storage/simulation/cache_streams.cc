// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/simulation/cache_streams.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

namespace quire {
namespace {

class RankDraw {
 public:
  RankDraw(uint64_t count, double exponent) {
    double sum = 0;
    sums_.reserve(count);
    for (uint64_t rank = 1; rank <= count; ++rank) {
      sum += std::pow(static_cast<double>(rank), -exponent);
      sums_.push_back(sum);
    }
  }

  // From 0.
  uint64_t Draw(std::mt19937_64& random) const {
    const double uniform =
        static_cast<double>(random() >> 11) / 9007199254740992.0;
    const auto at =
        std::upper_bound(sums_.begin(), sums_.end(), uniform * sums_.back());
    return std::min(static_cast<uint64_t>(at - sums_.begin()),
                    static_cast<uint64_t>(sums_.size() - 1));
  }

 private:
  std::vector<double> sums_;
};

// Not std::shuffle, whose order is each library's own.
std::vector<uint64_t> ShuffledNumbers(uint64_t count, std::mt19937_64& random) {
  std::vector<uint64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), uint64_t{0});
  for (uint64_t left = count; left > 1; --left) {
    std::swap(numbers[left - 1], numbers[random() % left]);
  }
  return numbers;
}

}  // namespace

std::vector<CacheRequest> MakeCacheStream(const CacheStreamOptions& options,
                                          uint64_t seed) {
  std::mt19937_64 random(seed);
  const RankDraw ranks(options.blocks, options.zipf_exponent);
  std::vector<uint64_t> block_of_rank = ShuffledNumbers(options.blocks, random);
  const uint64_t warm_up = options.requests / 4;
  std::vector<CacheRequest> stream;
  uint64_t scanned = 0;
  uint64_t run_first = 0;
  const uint64_t run_requests = options.run_blocks * options.asks_per_block;
  for (uint64_t i = 0; i < options.requests; ++i) {
    if (options.shift_interval != 0 && i > 0 &&
        i % options.shift_interval == 0) {
      block_of_rank = ShuffledNumbers(options.blocks, random);
    }
    if (i % run_requests == 0) {
      run_first = block_of_rank[ranks.Draw(random)];
    }
    stream.push_back(
        {.block = (run_first + i % run_requests / options.asks_per_block) %
                  options.blocks,
         .use = BlockCache::Use::kDemand,
         .counts = i >= warm_up});
    for (uint64_t k = 0; i >= warm_up && k < options.scan_blocks; ++k) {
      stream.push_back(
          {.block = scanned++ / options.scan_asks_per_block % options.blocks,
           .use = options.scan_use,
           .counts = false});
    }
  }
  return stream;
}

}  // namespace quire
